# What the driver of a shell seldom needs; the functions that code calls (trap, display) begin in bash.sh.

__cloche_trap() {
  builtin trap "$@"
  builtin local __cloche_status=$? __cloche_at __cloche_words __cloche_signal
  builtin local -A __cloche_now
  __cloche_now=()
  [[ $BASHPID == "$__cloche_shell" ]] || builtin return "$__cloche_status"
  builtin eval "__cloche_words=($(builtin trap -p EXIT INT))"
  for ((__cloche_at = 2; __cloche_at < ${#__cloche_words[@]}; __cloche_at += 4)); do
    __cloche_now[${__cloche_words[__cloche_at + 1]}]=${__cloche_words[__cloche_at]}
  done
  for __cloche_signal in EXIT SIGINT; do
    if [[ ${__cloche_now[$__cloche_signal]-} != "${__cloche_trapped[$__cloche_signal]}" ]]; then
      __cloche_wanted[$__cloche_signal]=${__cloche_now[$__cloche_signal]-}
      builtin trap "${__cloche_trapped[$__cloche_signal]}" "$__cloche_signal"
    fi
  done
  builtin return "$__cloche_status"
}

# Shows a picture or a PDF file as a result.
display() {
  builtin local __cloche_mime __cloche_data
  case ${1,,} in
  *.png) __cloche_mime=image/png ;;
  *.jpg | *.jpeg) __cloche_mime=image/jpeg ;;
  *.gif) __cloche_mime=image/gif ;;
  *.pdf) __cloche_mime=application/pdf ;;
  *) builtin printf 'display: %s: not one of .png, .jpg, .gif, .pdf\n' "$1" >&2 && builtin return 2 ;;
  esac
  __cloche_data=$(command base64 -w 0 -- "$1") || builtin return
  if ((${#__cloche_data} > 8 << 20)); then
    builtin printf 'display: %s: larger than 6 MiB\n' "$1" >&2
    builtin return 1
  fi
  # An interrupt would tear what does not fit into the pipe at once.
  builtin trap '' INT
  builtin printf '{"type": "result", "id": %s, "main": false, "data": {"%s": "%s"}}\n' \
    "$__cloche_id" "$__cloche_mime" "$__cloche_data" >&"${__cloche_inside[3]}"
  if [[ $BASHPID == "$__cloche_shell" ]]; then
    builtin trap "${__cloche_trapped[SIGINT]}" INT
  else
    builtin trap - INT
  fi
}

# The EXIT trap: goes on as another shell.
__cloche_leave() {
  __cloche_arguments=("$@")
  # Not ignored, as a shell cannot trap what is ignored when it starts.
  builtin trap : INT
  __cloche_shopts=$(builtin shopt -p)
  __cloche_options=$(builtin set +o)
  # This would turn off aliases too; that one a substitution turns off.
  __cloche_options=${__cloche_options/$'set +o posix\n'/}
  [[ $- != *e* ]] || __cloche_options+=$'\nset -e'
  __cloche_traps=$(builtin trap -p)
  # In posix mode no function hides `exec`, and only so called does it keep its redirections.
  builtin set +aeux -o posix
  builtin local __cloche_words __cloche_at
  builtin eval "__cloche_words=($__cloche_traps)"
  for ((__cloche_at = 3; __cloche_at < ${#__cloche_words[@]}; __cloche_at += 4)); do
    [[ ${__cloche_words[__cloche_at]} == @(EXIT|SIGINT) ]] || builtin trap - "${__cloche_words[__cloche_at]}"
  done
  # Where a function ended the shell, the loop's redirections are not undone.
  { :; } <&"${__cloche_inside[0]}" && for __cloche_at in 0 1 2 3; do
    # By way of 0: any other copy of what is closed by an exec is so too.
    exec <&"${__cloche_inside[__cloche_at]}"
    exec {__cloche_outside[__cloche_at]}<&0
  done
  exec {__cloche_at}< <(__cloche_print_state "$((${#FUNCNAME[@]} - 1))")
  exec "$__cloche_path" --norc --noprofile -c "$BASH_EXECUTION_STRING" bash "${__cloche_outside[@]}" \
    <&"$__cloche_at" {__cloche_at}<&-
} 2>/dev/null

# This driver, then the commands that make this shell's state; $1 is how many functions are running.
__cloche_print_state() {
  builtin local __cloche_name __cloche_all __cloche_more
  builtin set +o posix
  builtin printf '%s %s\n%s' "${#__cloche_source}" "${#__cloche_seldom}" "$__cloche_source$__cloche_seldom"
  builtin printf '%s\n' "$__cloche_shopts"
  for ((__cloche_more = ${#DIRSTACK[@]} - 1; __cloche_more > 0; __cloche_more--)); do
    builtin printf 'builtin pushd -n -- %q\n' "${DIRSTACK[__cloche_more]}"
  done
  builtin mapfile -t __cloche_all < <(builtin compgen -v)
  for __cloche_name in "${__cloche_all[@]}"; do
    case $__cloche_name in
    __cloche_wanted | __cloche_names | __cloche_values | __cloche_id | __cloche_count) ;;
    __cloche_left | __cloche_interrupted | __cloche_fields) ;;
    __cloche_* | LINENO | BASH_SUBSHELL | BASHPID | BASH_ALIASES) builtin continue ;;
    esac
    # What a function's variable hides comes later, and so stays.
    __cloche_more=$1
    while builtin declare -p "$__cloche_name" && ((__cloche_more-- > 0)) && builtin unset -v "$__cloche_name"; do :; done
  done
  # After the patterns that they may use, and before the aliases that would change them.
  builtin declare -f
  builtin declare -F
  builtin alias -p
  builtin printf 'set --'
  ((!${#__cloche_arguments[@]})) || builtin printf ' %q' "${__cloche_arguments[@]}"
  builtin printf '\n%s\n%s\n' "$__cloche_traps" "$__cloche_options"
}
