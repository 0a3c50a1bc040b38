// Package azure reads containers of Blob Storage accounts. A bucket is named ACCOUNT/CONTAINER.
//
// It reads only the current blob of a name, as the null version: the events of Blob Storage name no
// version, and a deleted blob is not listed, with or without versions. So a link refers to the content
// that the blob has when the link is used, and not to a version.
//
// A link is a shared access signature. It is signed with the key of the account or, if no key is
// configured, with a user delegation key. The identity of the process requests this key, and uses it
// until it expires. That requires the roles Storage Blob Data Reader and Storage Blob Delegator.
//
// Accounts with a hierarchical namespace list a folder before other names with the same prefix, which is
// not the order of keys: "a/b" before "a-b". For a bucket with such names, a listing fails with
// Unavailable.
package azure
