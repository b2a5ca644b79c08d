//! echo-node
