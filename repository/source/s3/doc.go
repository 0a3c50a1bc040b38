// Package s3 reads buckets of S3, and of other stores with the same protocol.
//
// A listing contains the latest version of each key. If the versions of a key fill a page, the next page
// begins after the key, and the remaining versions are not read. If a store cannot list versions, which
// is the case for some outside AWS, a listing is made without versions.
//
// Requests name the null version like any other version, because in a bucket with versions it is not
// always the latest one. So an identity needs s3:ListBucket, s3:ListBucketVersions, s3:GetObject and
// s3:GetObjectVersion.
package s3
