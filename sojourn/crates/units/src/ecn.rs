/// The ECN field of an IP header (RFC 3168, section 5): a host's capability, or a queue's mark.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Ecn {
    /// Not ECN-capable: only a drop can signal congestion.
    #[default]
    NotEct,
    /// ECN-capable, ECT(1): the sender's response is that of L4S (RFC 9331, section 4.1).
    Ect1,
    /// ECN-capable, ECT(0): one mark counts as one drop (RFC 3168, section 5).
    Ect0,
    /// Congestion experienced: a queue marked it.
    Ce,
}
