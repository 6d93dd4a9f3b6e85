//! The store from outside: images in every form, honest and hostile.

#[path = "store/bed.rs"]
mod bed;
#[path = "store/credentials.rs"]
mod credentials;
#[path = "store/export.rs"]
mod export;
#[path = "store/forms.rs"]
mod forms;
#[path = "store/hostile.rs"]
mod hostile;
#[path = "store/keeping.rs"]
mod keeping;
