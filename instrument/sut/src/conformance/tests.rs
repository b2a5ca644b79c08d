//! Broken sessions, each of which the suite must catch, and one that it must let pass.
