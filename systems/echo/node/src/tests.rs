//! The node against theory, and every lie against what it should be; all in virtual time.
