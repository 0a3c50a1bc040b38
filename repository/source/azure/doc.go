// Package azure reads containers of Blob Storage accounts. A bucket is named ACCOUNT/CONTAINER.
//
// It reads only the current blob of a name, as the null version: the events of Blob Storage name no
// version, and a deleted blob is not listed, with or without versions. So a link leads to the
// content that the blob has when it is read, and not to a version.
//
// A link is a shared access signature. It is signed with the key of the account or, if none is
// configured, with a user delegation key, which the identity of the process requests and reuses
// until it expires. That needs the roles Storage Blob Data Reader and Storage Blob Delegator.
//
// Accounts with a hierarchical namespace list a folder before other names with the same prefix,
// which is not the order of keys: "a/b" before "a-b". There the listing of a bucket fails with
// Unavailable.
package azure
