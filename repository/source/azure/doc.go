// Package azure reads containers of Blob Storage accounts. A bucket is named ACCOUNT/CONTAINER.
//
// It knows only the current blob of a name, as the null version: the events of Blob Storage name no
// version, and a blob that is deleted is not listed, with or without versions. So a link is for what the
// blob is when it is read, and not for a version.
//
// A link is a shared access signature: of the key of the account, or if that is not configured, of a
// user delegation key, which the identity of the process gets for itself and uses again until it expires.
// That needs the roles Storage Blob Data Reader and Storage Blob Delegator.
//
// Accounts with a hierarchical namespace list a folder before what has its name as a prefix, which is
// not the order of keys: "a/b" before "a-b". The listing of a bucket fails there with Unavailable.
package azure
