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
// What it does: create, delete and list containers; list the blobs of a container, by prefix and
// delimiter and in pages; write a block blob in one request, in blocks, or as a copy of another
// blob of the account; read it, whole or a range; read and change its metadata, properties and tier,
// and those of containers; read its list of blocks; delete it, alone or in a batch. All of these
// support the conditions If-Match, If-None-Match, If-Modified-Since and If-Unmodified-Since. Reads
// accept lists of etags. MD5 and CRC-64 of contents are verified and returned. Clients can set rules
// of CORS, and read from a secondary endpoint, whose URLs have -secondary after the account's name.
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
//     uncommitted blocks. Content is held in memory only if the account is in memory, up to
//     Options.MaxMemory.
//
// It calls Options.Changed for each write and deletion of a blob, with the data of the Event Grid
// events BlobCreated and BlobDeleted. As in Azure, changed metadata and the deletion of a
// container are no such events.
//
// Requests must be signed with the account's key (SharedKey), or have a shared access signature
// that the key has signed: a service SAS for a blob or a container, or an account SAS, of version
// 2015-04-05 or later. Stored access policies, keys of users and encryption scopes in a shared
// access signature are refused with 403, as is anonymous access. So are tokens of Microsoft Entra ID
// without Options.TrustTokens. All other features of Azure are refused by name, with 400 or 501 and a
// matching code: append and page blobs, copies from elsewhere, leases, snapshots and versions, tags,
// access policies. Unknown headers and parameters that may change the meaning of a request are
// refused.
//
// Names of metadata keep the case in which the client sent them, except in requests that a client
// sends without waiting for answers: there they become lower case. A change of metadata or
// properties copies the content, because a blob is one file. A list of more blocks than its file
// can hold (about 1000, by the length of their ids) is not stored; later lists cannot name its
// blocks.
//
// What a failure leaves behind: uncommitted blocks are lost with the process. A failed write (a
// full disk) is answered with 500 and does not change the blob. If a completed change cannot be
// synced, the account serves no requests until it is opened again, because the effect of a
// power failure would be unknown. Opening reads the properties of all blobs, which take 1 KB of
// memory each, and removes unfinished drafts and the rest of deleted containers. It fails if a
// blob's properties are damaged, and names the file. Content has no checksum: its writer can store
// one.
package embedded
