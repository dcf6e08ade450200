"""The host's end of the keeper's protocol: `frames` are the octets, `connection` moves them."""
