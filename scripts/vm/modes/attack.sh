# shellcheck shell=bash
# Sourced by the modes that run the attack suite.

# attack NAME: the suite, as this user on this machine; its table goes to
# results/NAME.md. test-vm.sh says how long it may take, in two files.
attack() {
    local options=()
    mapfile -t options <attack-options
    [ ! -e bless ] || export COFFERDAM_BLESS=1
    # Under emulation the kernel takes its time to tear a sandbox down.
    export ATTACK_PATIENCE_SECONDS=10
    COFFERDAM_GOLDEN=$PWD/golden ./cofferdam-attacks --probe ./probe --cofferdam ./cofferdam \
        --without-service --markdown "results/$1.md" "${options[@]}"
}
