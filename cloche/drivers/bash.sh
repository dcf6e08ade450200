# The driver of a shell: runs each piece of code by eval in this very shell, so that all that it changes stays.
#
# Where code ends the shell (`exit`, `set -e`, an interrupt), the EXIT trap puts a shell of the same state and the same
# process id in its place. That one does not know the jobs of the first; they go on. How it does so is in bash_seldom.sh,
# which is read but not parsed until it is needed.
#
# Code may define functions of any name, change any option, make any variable readonly: so builtins are called as such,
# all names begin with __cloche_, and nothing depends on IFS.

# The traps that the shell has, and those that the code asked for.
declare -A __cloche_trapped=(
  [EXIT]='__cloche_left=$?; builtin eval "$__cloche_seldom"; __cloche_leave "$@"'
  [SIGINT]=__cloche_interrupt
)
declare -A __cloche_wanted=()
declare -a __cloche_fields=() __cloche_names=() __cloche_values=()
declare -a __cloche_inside=() __cloche_outside=("$@") # descriptors: requests, stdout, stderr, replies
__cloche_id='' __cloche_count=0 __cloche_code='' __cloche_left='' __cloche_interrupted=''
__cloche_shell=$BASHPID __cloche_path=$BASH

# Ends what ran, takes the next request, and returns the status that its code sees as $?. It is called as a condition,
# where neither errexit nor an ERR trap counts.
__cloche_next() {
  builtin trap '' INT
  builtin local -
  builtin set +akux
  __cloche_status=${__cloche_left:-$__cloche_status}
  if [[ $__cloche_left && ${__cloche_wanted[EXIT]-} ]]; then
    __cloche_code=${__cloche_wanted[EXIT]}
    __cloche_wanted[EXIT]=''
  else
    [[ ! $__cloche_id ]] || __cloche_finish
    __cloche_receive || __cloche_end
    __cloche_begin
  fi
  builtin trap "${__cloche_trapped[EXIT]}" EXIT
  builtin trap "${__cloche_trapped[SIGINT]}" INT
  [[ ! $__cloche_interrupted || $__cloche_left ]] || __cloche_interrupt
  builtin return "$__cloche_status"
}

__cloche_receive() {
  # Lengths are in octets.
  builtin local LC_ALL=C __cloche_line __cloche_field __cloche_more
  __cloche_fields=()
  builtin read -r -u "${__cloche_inside[0]}" __cloche_line || builtin return
  __cloche_id=${__cloche_line%% *}
  for ((__cloche_more = ${__cloche_line##* }; __cloche_more > 0; __cloche_more--)); do
    builtin read -r -u "${__cloche_inside[0]}" __cloche_line &&
      builtin read -r -N "$__cloche_line" -u "${__cloche_inside[0]}" __cloche_field &&
      builtin read -r -u "${__cloche_inside[0]}" __cloche_line || builtin return
    __cloche_fields+=("$__cloche_field")
  done
}

__cloche_begin() {
  __cloche_left='' __cloche_interrupted=''
  # An interrupt counts from here on, but waits until all is ready for it.
  builtin trap '__cloche_interrupted=1' INT
  __cloche_say '{"type": "begun", "id": %s, "count": %s}\n' "$__cloche_id" "$((++__cloche_count))"
  __cloche_code=${__cloche_fields[0]}
  __cloche_set_variables "${__cloche_fields[@]:2}"
  if [[ ${__cloche_fields[1]} ]] && ! builtin cd -- "${__cloche_fields[1]}"; then
    # Once more, where what it says is seen.
    __cloche_code='builtin cd -- "${__cloche_fields[1]}"'
  fi
}

# A code other than 0 is no error: the exit code says all.
__cloche_finish() {
  __cloche_unset_variables
  [[ ! $__cloche_interrupted ]] ||
    __cloche_say '{"type": "error", "id": %s, "name": "Interrupted", "value": "", "traceback": ""}\n' "$__cloche_id"
  __cloche_say '{"type": "done", "id": %s, "exit_code": %s}\n' "$__cloche_id" "$__cloche_status"
  __cloche_id=''
}

# So little is written whole, or not at all where a signal comes first.
__cloche_say() {
  builtin printf "$@" >&"${__cloche_inside[3]}" || builtin printf "$@" >&"${__cloche_inside[3]}"
}

# The requests are at their end.
__cloche_end() {
  builtin trap - EXIT
  builtin eval "${__cloche_wanted[EXIT]-}" >&"${__cloche_inside[1]}" 2>&"${__cloche_inside[2]}"
  builtin exit 0
}

__cloche_set_variables() {
  builtin local __cloche_pair
  for __cloche_pair; do
    __cloche_names+=("${__cloche_pair%%=*}")
    __cloche_values+=("$(builtin declare -p -- "${__cloche_pair%%=*}")")
    builtin unset -v "${__cloche_pair%%=*}"
    builtin declare -gx "$__cloche_pair"
  done
}

__cloche_unset_variables() {
  builtin local __cloche_at
  for __cloche_at in "${!__cloche_names[@]}"; do
    builtin unset -v "${__cloche_names[__cloche_at]}"
    builtin eval "${__cloche_values[__cloche_at]/#declare/declare -g}"
  done
  __cloche_names=() __cloche_values=()
}

# The traps of EXIT and INT are the driver's; those that the code asks for it runs itself.
trap() {
  case ${*^^} in
  *EXIT* | *INT* | *[02]*) builtin eval "$__cloche_seldom" && __cloche_trap "$@" ;;
  *) builtin trap "$@" ;;
  esac
}
# Else what it does to a DEBUG trap would end with it.
declare -ft trap

display() {
  builtin eval "$__cloche_seldom" && display "$@"
}

__cloche_interrupt() {
  builtin trap '' INT
  __cloche_interrupted=1
  builtin eval "${__cloche_wanted[SIGINT]-}"
  builtin exit 130
}

# What a shell sets aside to undo a redirection no child inherits: so the loop's descriptors are such. Those below 20 are
# left to the code. All that the loop itself says is for /dev/null, as code can trace it.
__cloche_open() {
  builtin local at=0 low='exec </dev/null' aside='' run
  while ((at < 19)); do
    exec {at}<&0
    low+=" $at<&-"
  done
  if ((!${#__cloche_outside[@]})); then
    for at in 0 1 2 3; do builtin eval "exec {__cloche_outside[$at]}<&$at"; done
    exec 3>&-
  fi
  for at in 0 1 2 3; do
    exec {__cloche_inside[at]}<&0
    aside+=" ${__cloche_outside[at]}</dev/null"
    low+=" ${__cloche_outside[at]}<&-"
  done
  for at in "${__cloche_inside[@]}"; do builtin eval "exec $at<&-"; done
  run="builtin eval \"\$__cloche_code\" </dev/null >&${__cloche_inside[1]} 2>&${__cloche_inside[2]}"
  # Ends where the code turned on noexec, which makes each condition true.
  __cloche_loop="until ((__cloche_status = \$?, 0)); do if __cloche_next; then $run; else $run; fi; done"
  __cloche_loop="{ $1; $low; builtin trap '${__cloche_trapped[EXIT]}' EXIT; $__cloche_loop; }$aside"
}

builtin trap '' INT
# For which the shell would run its EXIT trap.
builtin trap 'builtin trap - EXIT TERM HUP; builtin kill -TERM "$BASHPID"' TERM HUP
if (($#)); then
  __cloche_open 'builtin source /dev/fd/0'
else
  __cloche_open :
  builtin printf '{"type": "ready", "version": "%s"}\n' "${BASH_VERSION%%(*}" >&"${__cloche_outside[3]}"
  exec </dev/null
fi
exec >/dev/null 2>&1
