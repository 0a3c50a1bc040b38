// Package embedded is a Blob Storage account inside the process: the azblob
// client talks to it through Transport as it talks to Azure, and what is answered
// is on disk. Other clients come to a listener, by URLs as Azurite has them:
// http://127.0.0.1:10000/devstoreaccount1/container/blob.
//
//	account, err := embedded.Open(embedded.Options{Dir: dir, Containers: []string{"exchange"}})
//	key, err := azblob.NewSharedKeyCredential(account.Name(), account.Key())
//	client, err := azblob.NewClientWithSharedKeyCredential(account.Endpoint(), key, &azblob.ClientOptions{
//		ClientOptions: azcore.ClientOptions{Transport: account.Transport()},
//	})
//
// What it does: create a container and read its properties; list the blobs of a
// container, by prefix and in pages; write a block blob in one request or in blocks;
// read it, whole or a range; read its properties; delete it. All of these take the
// conditions If-Match, If-None-Match, If-Modified-Since and If-Unmodified-Since.
//
// What it promises, as Blob Storage does:
//
//   - A write that was answered survives the death of the process, if Options.Dir
//     is set. A write whose answer was lost has happened as a whole or not at all.
//   - Conditions are exact: of any number of writers that send If-None-Match: *,
//     or the same If-Match, one wins.
//   - Every write gives a blob an etag that nothing ever had. Whoever reads an
//     older version reads it to its end.
//   - What a client sends is bounded: requests at one time and the time they take, headers, names, blobs,
//     and the blocks that nobody commits. Content is never held in memory, unless
//     the account is.
//
// Requests are signed with the account's key (SharedKey), or carry a service SAS that the
// key has signed and that permits to read one blob (sr=b, sp=r); nothing can be done
// without. Other shared access signatures, tokens of Microsoft Entra ID and anonymous
// access are refused with 403. So is, with 400 or 501 and a code that says so, all
// else that Azure has: append and page blobs, copies, leases, snapshots and
// versions, tags, tiers, changing the metadata or the properties of a blob, deleting
// and listing containers, listing by a delimiter. Nothing that changes the meaning
// of a request is passed over. Names of metadata come back in lower case. A list of
// blocks may name those that were put since the blob was last written, no others.
//
// What a failure leaves behind: blocks that were not committed are gone when the
// process is. A write that fails (a full disk) is answered with 500 and leaves the
// blob as it was. If the disk cannot even be told to keep what has already taken
// its place, no request is served any more until the account is opened again:
// nobody could say what would outlast a power failure. Opening reads the properties
// of all blobs, which then take 1 KB of memory each, removes what was not finished,
// and refuses a folder in which a blob's properties are damaged, naming
// the file. Content carries no checksum of ours: what it has to be is known to
// those who wrote it.
package embedded
