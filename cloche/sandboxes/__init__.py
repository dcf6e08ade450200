"""The sandboxes of this machine: what one is to be, making it, finding it again, and its end."""
