//! Riak's messages as far as kvdyno uses them, after riak.proto and riak_kv.proto of basho/riak_pb.
//! Fields that are not listed are not sent, and skipped where they come.

/// Request for an object.
#[derive(Clone, PartialEq, prost::Message)]
pub struct RpbGetReq {
    /// Bucket.
    #[prost(bytes = "vec", required, tag = "1")]
    pub bucket: Vec<u8>,
    /// Key.
    #[prost(bytes = "vec", required, tag = "2")]
    pub key: Vec<u8>,
    /// Replicas that must answer.
    #[prost(uint32, optional, tag = "3")]
    pub r: Option<u32>,
    /// Primary replicas that must answer.
    #[prost(uint32, optional, tag = "4")]
    pub pr: Option<u32>,
    /// True for everything but the values.
    #[prost(bool, optional, tag = "8")]
    pub head: Option<bool>,
    /// True for the vector clock of a tombstone, too.
    #[prost(bool, optional, tag = "9")]
    pub deletedvclock: Option<bool>,
    /// Milliseconds after which the node gives up.
    #[prost(uint32, optional, tag = "10")]
    pub timeout: Option<u32>,
    /// Bucket type; the default one if absent.
    #[prost(bytes = "vec", optional, tag = "13")]
    pub r#type: Option<Vec<u8>>,
}

/// One value of an object, as it is written.
#[derive(Clone, PartialEq, prost::Message)]
pub struct RpbContent {
    /// The value.
    #[prost(bytes = "vec", required, tag = "1")]
    pub value: Vec<u8>,
    /// Its media type.
    #[prost(bytes = "vec", optional, tag = "2")]
    pub content_type: Option<Vec<u8>>,
}

/// Request to write an object.
#[derive(Clone, PartialEq, prost::Message)]
pub struct RpbPutReq {
    /// Bucket.
    #[prost(bytes = "vec", required, tag = "1")]
    pub bucket: Vec<u8>,
    /// Key.
    #[prost(bytes = "vec", optional, tag = "2")]
    pub key: Option<Vec<u8>>,
    /// Vector clock that was read before: it names what this value replaces.
    #[prost(bytes = "vec", optional, tag = "3")]
    pub vclock: Option<Vec<u8>>,
    /// The value.
    #[prost(message, required, tag = "4")]
    pub content: RpbContent,
    /// Replicas that must have received it.
    #[prost(uint32, optional, tag = "5")]
    pub w: Option<u32>,
    /// Replicas that must have handed it to their backend.
    #[prost(uint32, optional, tag = "6")]
    pub dw: Option<u32>,
    /// Primary replicas that must have it.
    #[prost(uint32, optional, tag = "8")]
    pub pw: Option<u32>,
    /// Milliseconds after which the node gives up.
    #[prost(uint32, optional, tag = "12")]
    pub timeout: Option<u32>,
    /// Bucket type; the default one if absent.
    #[prost(bytes = "vec", optional, tag = "16")]
    pub r#type: Option<Vec<u8>>,
}

/// Request to delete an object.
#[derive(Clone, PartialEq, prost::Message)]
pub struct RpbDelReq {
    /// Bucket.
    #[prost(bytes = "vec", required, tag = "1")]
    pub bucket: Vec<u8>,
    /// Key.
    #[prost(bytes = "vec", required, tag = "2")]
    pub key: Vec<u8>,
    /// Replicas that must answer the get by which the node reads the vector clock first.
    #[prost(uint32, optional, tag = "5")]
    pub r: Option<u32>,
    /// Replicas that must have received the deletion.
    #[prost(uint32, optional, tag = "6")]
    pub w: Option<u32>,
    /// Primary replicas that must answer that get.
    #[prost(uint32, optional, tag = "7")]
    pub pr: Option<u32>,
    /// Primary replicas that must have the deletion.
    #[prost(uint32, optional, tag = "8")]
    pub pw: Option<u32>,
    /// Replicas that must have handed the deletion to their backend.
    #[prost(uint32, optional, tag = "9")]
    pub dw: Option<u32>,
    /// Milliseconds after which the node gives up.
    #[prost(uint32, optional, tag = "10")]
    pub timeout: Option<u32>,
    /// Bucket type; the default one if absent.
    #[prost(bytes = "vec", optional, tag = "13")]
    pub r#type: Option<Vec<u8>>,
}

/// Error, with which any request can be answered.
#[derive(Clone, PartialEq, prost::Message)]
pub struct RpbErrorResp {
    /// Text of the error.
    #[prost(bytes = "vec", required, tag = "1")]
    pub errmsg: Vec<u8>,
    /// A number for it, mostly 0.
    #[prost(uint32, required, tag = "2")]
    pub errcode: u32,
}

/// Name and version of a node.
#[derive(Clone, PartialEq, prost::Message)]
pub struct RpbGetServerInfoResp {
    /// Its name in the cluster.
    #[prost(bytes = "vec", optional, tag = "1")]
    pub node: Option<Vec<u8>>,
    /// Version of Riak.
    #[prost(bytes = "vec", optional, tag = "2")]
    pub server_version: Option<Vec<u8>>,
}

/// Request for the properties of a bucket.
#[derive(Clone, PartialEq, prost::Message)]
pub struct RpbGetBucketReq {
    /// Bucket.
    #[prost(bytes = "vec", required, tag = "1")]
    pub bucket: Vec<u8>,
    /// Bucket type; the default one if absent.
    #[prost(bytes = "vec", optional, tag = "2")]
    pub r#type: Option<Vec<u8>>,
}

/// The properties of a bucket.
#[derive(Clone, PartialEq, prost::Message)]
pub struct RpbGetBucketResp {
    /// The properties.
    #[prost(message, required, tag = "1")]
    pub props: RpbBucketProps,
}

/// Request to set properties of a bucket; those that are absent stay as they are.
#[derive(Clone, PartialEq, prost::Message)]
pub struct RpbSetBucketReq {
    /// Bucket.
    #[prost(bytes = "vec", required, tag = "1")]
    pub bucket: Vec<u8>,
    /// The properties.
    #[prost(message, required, tag = "2")]
    pub props: RpbBucketProps,
    /// Bucket type; the default one if absent.
    #[prost(bytes = "vec", optional, tag = "3")]
    pub r#type: Option<Vec<u8>>,
}

/// Properties of a bucket.
#[derive(Clone, PartialEq, prost::Message)]
pub struct RpbBucketProps {
    /// Replicas of each object.
    #[prost(uint32, optional, tag = "1")]
    pub n_val: Option<u32>,
    /// True if concurrent writes are kept as siblings.
    #[prost(bool, optional, tag = "2")]
    pub allow_mult: Option<bool>,
    /// True if vector clocks are not looked at: the latest timestamp wins.
    #[prost(bool, optional, tag = "3")]
    pub last_write_wins: Option<bool>,
    /// Default of a get's `pr`.
    #[prost(uint32, optional, tag = "14")]
    pub pr: Option<u32>,
    /// Default of a get's `r`.
    #[prost(uint32, optional, tag = "15")]
    pub r: Option<u32>,
    /// Default of a put's `w`.
    #[prost(uint32, optional, tag = "16")]
    pub w: Option<u32>,
    /// Default of a put's `pw`.
    #[prost(uint32, optional, tag = "17")]
    pub pw: Option<u32>,
    /// Default of a put's `dw`.
    #[prost(uint32, optional, tag = "18")]
    pub dw: Option<u32>,
    /// Name of the backend, of several, that holds the bucket.
    #[prost(bytes = "vec", optional, tag = "22")]
    pub backend: Option<Vec<u8>>,
    /// True if objects are written once and never changed.
    #[prost(bool, optional, tag = "28")]
    pub write_once: Option<bool>,
}
