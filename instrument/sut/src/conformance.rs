//! The suite that every adapter's session passes.
