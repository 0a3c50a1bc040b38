// Package embedded is a Blob Storage account inside the process. The azblob client uses it
// through Transport as it uses Azure, and a confirmed write is on disk. Other clients use a
// listener, with the URLs of Azurite: http://127.0.0.1:10000/devstoreaccount1/container/blob.
//
//	account, err := embedded.Open(embedded.Options{Dir: dir, Containers: []string{"exchange"}})
//	key, err := azblob.NewSharedKeyCredential(account.Name(), account.Key())
//	client, err := azblob.NewClientWithSharedKeyCredential(account.Endpoint(), key, &azblob.ClientOptions{
//		ClientOptions: azcore.ClientOptions{Transport: account.Transport()},
//	})
//
// What it does: create a container and read its properties; list the blobs of a container, by
// prefix and in pages; write a block blob in one request or in blocks; read it, whole or a
// range; read its properties; delete it. All of these support the conditions If-Match,
// If-None-Match, If-Modified-Since and If-Unmodified-Since.
//
// Its promises are those of Blob Storage:
//
//   - A confirmed write survives the death of the process if Options.Dir is set. A write whose
//     answer was lost was executed completely or had no effect.
//   - Conditions are exact: of several writers with If-None-Match: *, or with the same
//     If-Match, one succeeds.
//   - Every write assigns a new, unique etag. A client that reads an older version can read it
//     to its end.
//   - Input is bounded: concurrent requests and their duration, headers, names, blobs, and
//     uncommitted blocks. Content is held in memory only if the account is in memory.
//
// It calls Options.Changed for each change of a blob, with the data of the Event Grid events
// BlobCreated and BlobDeleted.
//
// Requests must be signed with the account's key (SharedKey), or have a service SAS that the
// key has signed and that permits reading one blob (sr=b, sp=r). Other shared access
// signatures, tokens of Microsoft Entra ID and anonymous access are refused with 403. All other
// features of Azure are refused with 400 or 501 and a matching code: append and page blobs,
// copies, leases, snapshots and versions, tags, tiers, changing the metadata or the properties
// of a blob, deleting and listing containers, listing by a delimiter. Unknown headers and
// parameters that may change the meaning of a request are refused. Names of metadata keep
// the case in which the client sent them, except those of requests that a client sends without
// waiting for answers: they become lower case. A list of blocks can only name blocks that were put since the last
// write of the blob.
//
// What a failure leaves behind: uncommitted blocks are lost with the process. A failed write (a
// full disk) is answered with 500 and does not change the blob. If a completed change cannot be
// synced, the account serves no requests until it is opened again, because the effect of a
// power failure would be unknown. Opening reads the properties of all blobs, which take 1 KB of
// memory each, and removes unfinished drafts. It fails if a blob's properties are damaged, and
// names the file. Content has no checksum: its writer can store one.
package embedded
