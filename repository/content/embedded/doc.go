// Package embedded implements a Blob Storage account that runs inside the process. The azblob client
// sends its requests to the account through Transport, without a network. Other clients connect to a
// listener. Its URLs have the form that Azurite uses:
// http://127.0.0.1:10000/devstoreaccount1/container/blob.
//
//	account, err := embedded.Open(embedded.Options{Dir: dir, Containers: []string{"exchange"}})
//	key, err := azblob.NewSharedKeyCredential(account.Name(), account.Key())
//	client, err := azblob.NewClientWithSharedKeyCredential(account.Endpoint(), key, &azblob.ClientOptions{
//		ClientOptions: azcore.ClientOptions{Transport: account.Transport()},
//	})
//
// The account can:
//
//   - create, delete and list containers, and read and change their metadata;
//   - list the blobs of a container, by prefix and delimiter and in pages;
//   - write a block blob in one request, in blocks, or as a copy of another blob of the account;
//   - read a whole blob, a range of it, or its list of blocks;
//   - read and change the metadata, properties and tier of a blob;
//   - delete blobs, alone or in a batch.
//
// All of these support the conditions If-Match, If-None-Match, If-Modified-Since and
// If-Unmodified-Since. Reads accept lists of etags. MD5 and CRC-64 of contents are verified and
// returned. Clients can set CORS rules, and read from a secondary endpoint, whose URLs have -secondary
// after the account's name.
//
// The account keeps the promises of Blob Storage:
//
//   - A confirmed write survives the death of the process if Options.Dir is set. A write whose
//     response was lost was executed completely or had no effect.
//   - Conditions are exact: of several writers with If-None-Match: *, or with the same
//     If-Match, one succeeds.
//   - Every write assigns a new, unique etag. A client that reads an older version can read this
//     version to its end.
//   - Input is bounded: concurrent requests and their duration, headers, names, blobs, and
//     uncommitted blocks. Content is held in memory only if the account is in memory, up to
//     Options.MaxMemory.
//
// The account calls Options.Changed for each write and deletion of a blob, with the data of the Event
// Grid events BlobCreated and BlobDeleted. As on Azure, it does not call Options.Changed for a change of
// metadata or the deletion of a container.
//
// Requests must be signed with the account's key (SharedKey), or have a shared access signature (SAS)
// that is signed with the key: a service SAS for a blob or a container, or an account SAS, of version
// 2015-04-05 or later. The account refuses with 403: anonymous access; stored access policies, user
// delegation keys and encryption scopes in a SAS; and tokens of Microsoft Entra ID unless
// Options.TrustTokens is set. It refuses all other features of Azure by name, with 400 or 501 and a
// matching code: append and page blobs, copies from other accounts, leases, snapshots and versions, tags,
// access policies. It also refuses unknown headers and parameters that may change the meaning of a
// request.
//
// Names of metadata keep the case in which the client sent them. They become lower case only in
// pipelined requests, which a client sends without waiting for responses. A change of metadata or
// properties copies the content, because a blob is one file. A list of more blocks than the file can
// hold (about 1000, depending on the length of the ids) is not stored; later lists cannot name these
// blocks.
//
// What a failure leaves behind: uncommitted blocks are lost with the process. A failed write (a full
// disk) gets the response 500 and does not change the blob. If a completed change cannot be synced, the
// account serves no requests until it is opened again, because the effect of a power failure would be
// unknown. Opening reads the properties of all blobs, which take 1 KB of memory each, and removes
// unfinished drafts and the files of deleted containers. If the properties of a blob are damaged, opening
// fails with an error that names the file. Damaged content is not detected: its writer can store a
// checksum.
package embedded
