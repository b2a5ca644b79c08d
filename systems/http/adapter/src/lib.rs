//! http-adapter
