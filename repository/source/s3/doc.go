// Package s3 reads buckets of S3, and of stores that speak its protocol.
//
// A listing has the latest version of each key. If the versions of a key fill a page, the next page
// begins after the key, and its other versions are not read. A store that cannot list versions, such
// as some that are not from AWS, is listed without them.
//
// Requests name the null version like any other, because in a bucket with versions it need not be
// the latest one. So an identity needs s3:ListBucket, s3:ListBucketVersions, s3:GetObject and
// s3:GetObjectVersion.
package s3
