package domain

import (
	"cmp"
	"unicode/utf8"
)

// An ObjectName identifies an object by its bucket and its key. Only ParseObjectName creates one.
// It can be a map key.
type ObjectName struct{ bucket, key string }

const (
	maxBucket    = 255  // in bytes; Azure needs up to 88 for account and container
	maxKey       = 1024 // in characters, the limit of Azure; the limit of S3 is 1,024 bytes
	maxVersionID = 1024 // in bytes, the limit of S3
)

// ParseObjectName accepts a bucket of 1 to 255 bytes and a key of 1 to 1,024 characters. Both must
// be UTF-8. The key must be decoded, as in a store's listing. Any other text is an Invalid error.
func ParseObjectName(bucket, key string) (ObjectName, error) {
	switch {
	case len(bucket) < 1 || len(bucket) > maxBucket:
		return ObjectName{}, Errorf(Invalid, "bucket: want 1 to %d bytes, got %d", maxBucket, len(bucket))
	case !utf8.ValidString(bucket):
		return ObjectName{}, Errorf(Invalid, "bucket: want UTF-8, got %q", Shorten(bucket))
	case !utf8.ValidString(key):
		return ObjectName{}, Errorf(Invalid, "key: want UTF-8, got %q", Shorten(key))
	}
	if n := utf8.RuneCountInString(key); n < 1 || n > maxKey {
		return ObjectName{}, Errorf(Invalid, "key: want 1 to %d characters, got %d", maxKey, n)
	}
	return ObjectName{bucket, key}, nil
}

// Bucket returns the bucket of the object.
func (n ObjectName) Bucket() string { return n.bucket }

// Key returns the key of the object in its bucket.
func (n ObjectName) Key() string { return n.key }

// CompareObjectNames orders names by bucket, then by key. It compares byte by byte, as stores do in
// their listings.
func CompareObjectNames(a, b ObjectName) int {
	return cmp.Or(cmp.Compare(a.bucket, b.bucket), cmp.Compare(a.key, b.key))
}

// A VersionID names a version of an object. The zero value is the null version, the only version
// of an object in a bucket without versioning.
type VersionID struct{ s string }

const nullVersion = "null"

// ParseVersionID accepts up to 1,024 bytes of UTF-8. Empty text and "null" name the null version.
func ParseVersionID(s string) (VersionID, error) {
	switch {
	case s == nullVersion:
		return VersionID{}, nil
	case len(s) > maxVersionID:
		return VersionID{}, Errorf(Invalid, "version id: want at most %d bytes, got %d", maxVersionID, len(s))
	case !utf8.ValidString(s):
		return VersionID{}, Errorf(Invalid, "version id: want UTF-8, got %q", Shorten(s))
	}
	return VersionID{s}, nil
}

// String returns the id as it was parsed, or "null" for the null version.
func (v VersionID) String() string { return cmp.Or(v.s, nullVersion) }
