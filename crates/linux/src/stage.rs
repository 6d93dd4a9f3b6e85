//! The steps of making a sandbox and starting a process in it, by name.
//!
//! A step that fails ends the making: nothing behind it runs. The number travels from the child that failed to
//! the host, which turns it into words.

macro_rules! stages {
    ($($name:ident = $text:literal,)*) => {
        /// One step.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        #[repr(u32)]
        pub enum Stage { $($name,)* }

        impl Stage {
            pub const ALL: &[Self] = &[$(Self::$name,)*];

            pub fn text(self) -> &'static str {
                match self { $(Self::$name => $text,)* }
            }
        }
    };
}

stages! {
    Slot = "taking a range of user ids",
    Cgroup = "making the cgroup",
    CgroupLimit = "setting the cgroup's limits",
    Clone = "cloning into new namespaces",
    IdMap = "mapping user ids",
    Sync = "waiting for the launcher",
    Identity = "becoming root of the user namespace",
    DeathSignal = "asking to die with the launcher",
    Fds = "closing inherited descriptors",
    Keyring = "joining a new session keyring",
    Hostname = "setting the hostname",
    Loopback = "bringing loopback up",
    NamespaceLimits = "forbidding further namespaces",
    OomScore = "becoming the first victim of a memory shortage",
    Propagation = "making mounts private",
    Files = "mounting the workspace",
    FilesLayout = "laying out the workspace",
    Layers = "giving the image's files to the sandbox user",
    Root = "mounting the root filesystem",
    RootPart = "mounting a part of the root filesystem",
    Dev = "mounting /dev",
    Terminals = "mounting /dev/pts",
    Shm = "mounting /dev/shm",
    Proc = "mounting /proc",
    ProcMask = "masking /proc",
    Workspace = "placing /workspace, /tmp and /run",
    Pivot = "changing the root",
    Detach = "detaching the host's root",
    Rlimits = "setting resource limits",
    Landlock = "making the Landlock rules",
    InitDumpable = "hiding init's memory",
    InitCapabilities = "dropping init's capabilities",
    InitSeccomp = "installing init's system call filter",
    InitProbe = "proving the controls",
    Start = "starting a process",
    PayloadDeathSignal = "asking to die with init",
    PayloadCgroup = "joining the cgroup",
    PayloadCgroupNamespace = "entering a cgroup namespace",
    PayloadSession = "starting a session",
    PayloadTerminal = "taking the terminal",
    PayloadStdio = "connecting stdin, stdout and stderr",
    PayloadGroups = "dropping groups",
    PayloadIdentity = "becoming the sandbox user",
    PayloadCapabilities = "dropping capabilities",
    PayloadSecurebits = "locking the secure bits",
    PayloadNoNewPrivs = "giving up new privileges",
    PayloadWorkdir = "entering the working directory",
    PayloadLandlock = "entering Landlock",
    PayloadFds = "closing descriptors",
    PayloadSeccomp = "installing the system call filter",
    PayloadProbe = "proving the process's controls",
    PayloadExec = "executing the program",
}

impl Stage {
    pub fn from_number(number: u32) -> Option<Self> {
        Self::ALL.get(number as usize).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_come_back_as_the_same_stage() {
        for (i, stage) in Stage::ALL.iter().enumerate() {
            assert_eq!(*stage as usize, i);
            assert_eq!(Stage::from_number(i as u32), Some(*stage));
        }
        assert_eq!(Stage::from_number(Stage::ALL.len() as u32), None);
    }
}
