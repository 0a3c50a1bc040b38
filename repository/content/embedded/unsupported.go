package embedded

import (
	"slices"
	"strings"
)

// Unsupported features of Azure, by the parameter or header that requests them.
var (
	unsupportedParts = map[string]string{ // by the value of the parameter comp
		"lease": "leases", "tags": "tags", "blobs": "searches by tags", "snapshot": "snapshots", "undelete": "soft deletion",
		"page": "page blobs", "pagelist": "page blobs", "incrementalcopy": "page blobs",
		"appendblock": "append blobs", "seal": "append blobs",
		"query": "queries of content", "expiry": "expiry times of blobs", "immutabilityPolicies": "immutability policies",
		"legalhold": "legal holds", "userdelegationkey": "keys of users for shared access signatures",
		"rename": "renaming containers",
	}
	unsupportedParameters = map[string]string{
		"snapshot": "snapshots", "versionid": "versions of blobs", "prevsnapshot": "snapshots", "deletetype": "soft deletion",
		"where": "searches by tags", "startFrom": "lists that start from a name; use marker", "endBefore": "lists that end before a name",
	}
	unsupportedHeaders = map[string]string{ // a key that ends with a dash matches all headers with this prefix
		"x-ms-lease-": "leases", "x-ms-proposed-lease-id": "leases", "x-ms-source-lease-id": "leases", "x-ms-tags": "tags",
		"x-ms-if-tags": "tags", "x-ms-source-if-tags": "tags", "x-ms-copy-source-tag-option": "tags",
		"x-ms-encryption-": "encryption keys and scopes", "x-ms-default-encryption-scope": "encryption scopes",
		"x-ms-deny-encryption-scope-override": "encryption scopes", "x-ms-blob-public-access": "public access to containers",
		"x-ms-blob-content-length": "page blobs", "x-ms-blob-sequence-number": "page blobs", "x-ms-sequence-number-action": "page blobs",
		"x-ms-blob-condition-": "append blobs", "x-ms-seal-blob": "append blobs", "x-ms-immutability-": "immutability policies",
		"x-ms-legal-hold":  "legal holds",
		"x-ms-structured-": "structured bodies", "x-ms-copy-source-authorization": "copies from other accounts", "x-ms-source-range": "content that is read from a URL",
		"x-ms-delete-type-permanent": "soft deletion", "x-ms-expiry-": "expiry times of blobs",
		"x-ms-deleted-": "soft deletion", "x-ms-upn": "users as owners",
	}
)

var knownParameters = []string{
	"restype", "comp", "timeout", "prefix", "marker", "maxresults", "include", "delimiter", "blockid", "blocklisttype", "copyid",
}

// knownHeaders are the headers that are supported or can safely be ignored.
var knownHeaders = []string{
	"x-ms-date", "x-ms-version", "x-ms-client-request-id", "x-ms-return-client-request-id", "x-ms-useragent",
	"x-ms-correlation-request-id", "x-ms-request-id", "x-ms-request-root-id",
	"x-ms-blob-type", "x-ms-range", "x-ms-delete-snapshots", "x-ms-blob-content-md5",
	"x-ms-blob-content-type", "x-ms-blob-content-encoding", "x-ms-blob-content-language",
	"x-ms-blob-content-disposition", "x-ms-blob-cache-control",
	"x-ms-access-tier", "x-ms-rehydrate-priority",
	"x-ms-content-crc64", "x-ms-range-get-content-md5", "x-ms-range-get-content-crc64", "x-ms-source-content-md5", "x-ms-source-content-crc64",
	"x-ms-copy-source", "x-ms-file-request-intent", "x-ms-requires-sync", "x-ms-copy-action",
	"x-ms-source-if-match", "x-ms-source-if-none-match", "x-ms-source-if-modified-since", "x-ms-source-if-unmodified-since",
}

// checkPart returns an error if a value of the parameter comp requests an unsupported feature.
func checkPart(comp string) error {
	if feature, ok := unsupportedParts[comp]; ok {
		return notImplemented("%s (comp=%s)", feature, comp)
	}
	return nil
}

// checkParameter returns an error for a parameter that may change the meaning of a request.
func checkParameter(name string) error {
	if slices.Contains(knownParameters, name) {
		return nil
	}
	if feature, ok := unsupportedParameters[name]; ok {
		return newBlobError(400, "UnsupportedQueryParameter", "the embedded account does not support %s (query parameter %s)", feature, name)
	}
	return newBlobError(400, "UnsupportedQueryParameter", "the embedded account does not support the query parameter %.40q", name)
}

// checkHeader returns an error for a header that may change the meaning of a request. name is in lower case.
func checkHeader(name string) error {
	if !strings.HasPrefix(name, "x-ms-") || strings.HasPrefix(name, metadataPrefix) || slices.Contains(knownHeaders, name) {
		return nil
	}
	for prefix, feature := range unsupportedHeaders {
		if name == prefix || strings.HasSuffix(prefix, "-") && strings.HasPrefix(name, prefix) {
			return newBlobError(400, "UnsupportedHeader", "the embedded account does not support %s (header %.60s)", feature, name)
		}
	}
	return newBlobError(400, "UnsupportedHeader", "the embedded account does not support the header %.60s", name)
}

// unsupportedType returns the error for an unsupported blob type.
func unsupportedType(kind string) error {
	switch kind {
	case "AppendBlob":
		return notImplemented("append blobs (x-ms-blob-type: AppendBlob)")
	case "PageBlob":
		return notImplemented("page blobs (x-ms-blob-type: PageBlob)")
	}
	return notImplemented("blobs of the type %.20q, only BlockBlob", kind)
}
