//! echo-adapter
