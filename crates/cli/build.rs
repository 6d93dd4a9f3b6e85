//! Makes the program begin before glibc: see `crates/linux/early/src/entry.rs`.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    if std::env::var("CARGO_CFG_TARGET_ARCH").is_ok_and(|arch| arch == "x86_64") {
        println!("cargo:rustc-link-arg-bin=cofferdam=-Wl,--entry=cofferdam_start");
    }
}
