// Package s3 reads buckets of S3, and of stores that speak its protocol.
//
// A listing has the latest version of each key. Where the versions of a key fill a page,
// the next page begins behind the key, and its other versions are not read. A store that cannot list
// versions, such as some that are not of AWS, is listed without them.
//
// The null version is named in requests as any other, since the null version of a bucket with versions
// need not be the latest one. So an identity needs s3:ListBucket, s3:ListBucketVersions, s3:GetObject and
// s3:GetObjectVersion.
package s3
