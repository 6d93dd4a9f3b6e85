//! The user of a container in its image's own lists of accounts.

use crate::UID;

/// `/etc/passwd` and `/etc/group` of an image, each with a line for our user, unless somebody has the number already.
pub fn with_user(passwd: String, group: String) -> (String, String) {
    let user = format!("sandbox:x:{UID}:{UID}:sandbox:/workspace:/bin/sh");
    (with_line(passwd, &user), with_line(group, &format!("sandbox:x:{UID}:")))
}

fn with_line(mut text: String, line: &str) -> String {
    let number = UID.to_string();
    if !text.lines().any(|line| line.split(':').nth(2) == Some(&*number)) {
        if !text.is_empty() && !text.ends_with('\n') {
            text.push('\n');
        }
        text.push_str(line);
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_user_is_added_where_nobody_has_the_number() {
        let line = "sandbox:x:1000:1000:sandbox:/workspace:/bin/sh";
        assert_eq!(with_line(String::new(), line), format!("{line}\n"));
        let root = "root:x:0:0:root:/root:/bin/sh";
        assert_eq!(with_line(root.to_owned(), line), format!("{root}\n{line}\n"));
        let node = "node:x:1000:1000::/home/node:/bin/bash\n";
        assert_eq!(with_line(node.to_owned(), line), node);
    }
}
