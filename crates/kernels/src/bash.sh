# The Bash kernel: an interactive shell that reads lines from the host. For each cell there are two, one that takes
# and runs it and one that tells how it ended. An interrupt makes the shell drop the first, wherever it is in it, and
# go on with the second. Cells are run at the top, not in a function, so that what they declare stays.
PS1= PS2=
exec 2>&197
set +m +H +o history
unset HISTFILE MAILCHECK
exec 196>&1 198<>"/dev/tcp/127.0.0.1/$_cofferdam_port"
printf %s "$_cofferdam_token" >&198
unset _cofferdam_port _cofferdam_token
_cofferdam_status=0 _cofferdam_text= _cofferdam_marker= _cofferdam_pending= _cofferdam_done=
_cofferdam_word() { IFS= read -r -d '' -u 198 "$1" || exit 0; }
_cofferdam_take() {
    local word count name value
    # The length, the kind, the marker, the number, the language, the variables.
    _cofferdam_word word; _cofferdam_word word
    _cofferdam_word _cofferdam_marker; _cofferdam_word word; _cofferdam_word word
    _cofferdam_word count
    while (( count-- > 0 )); do
        _cofferdam_word name; _cofferdam_word value
        export "$name=$value"
    done
    _cofferdam_word _cofferdam_text
    _cofferdam_pending=1 _cofferdam_done=
}
_cofferdam_last() { return "$_cofferdam_status"; }
_cofferdam_end() {
    # A shell that dropped a line has not come to note its status.
    local status=$? interrupted=false error=
    [[ $_cofferdam_pending ]] || return "$_cofferdam_status"
    if [[ $_cofferdam_done ]]; then status=$_cofferdam_done; elif (( status == 130 )); then interrupted=true; fi
    if (( status != 0 )); then
        error=',"error":{"name":"ExitStatus","value":"'$status'","traceback":[]}'
    fi
    local body='{"interrupted":'$interrupted',"exit_code":'$status$error'}'
    _cofferdam_status=$status _cofferdam_text=
    printf %s "$_cofferdam_marker" >&196
    printf %s "$_cofferdam_marker" >&197
    printf 'end %d\n%s' "${#body}" "$body" >&198
    _cofferdam_pending=
}
_cofferdam_ready='{"version":"'${BASH_VERSINFO[0]}.${BASH_VERSINFO[1]}.${BASH_VERSINFO[2]}'"}'
printf 'ready %d\n%s' "${#_cofferdam_ready}" "$_cofferdam_ready" >&198
unset _cofferdam_ready
