package embedded

import (
	"cmp"
	"encoding/base64"
	"errors"
	"fmt"
	"log/slog"
	"regexp"
	"sync"
	"time"

	"github.com/messagehub/messagehub/cosmos/embedded/datafolder"
)

// The account that Azurite and its predecessors have.
const (
	WellKnownAccount = "devstoreaccount1"
	WellKnownKey     = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
)

// Options set up an Account. The zero value is an empty one in memory.
type Options struct {
	// Dir is the folder of the account. It is made if it does not exist, and
	// belongs to this account alone. Without it all is kept in memory and
	// forgotten by Close.
	Dir string

	// Claim says which data folder the account in Dir must belong to. Default: it is not
	// checked.
	Claim datafolder.Claim

	// Account is the account's name. Default: WellKnownAccount.
	Account string

	// Key is the account's key in base64. Default: WellKnownKey.
	Key string

	// TrustTokens takes any token of Microsoft Entra ID for a good one, with all rights. It is
	// not read.
	TrustTokens bool

	// Containers are made when the account is opened, if they are not there.
	Containers []string

	// MaxBlob bounds the bytes of one blob. Default: 1 GiB.
	MaxBlob int64

	// MaxUncommitted bounds the bytes of all blocks that are not committed.
	// Default: 4 GiB.
	MaxUncommitted int64

	// MaxRequests bounds the requests at one time; one more is answered 503. A
	// quarter of them is kept for Transport, so that those who come over the network
	// cannot shut out the process that the account is part of. Default: 256.
	MaxRequests int

	// Clock gives the time of Last-Modified. Default: time.Now. The dates of
	// requests are always checked against time.Now, as the client sets them.
	Clock func() time.Time

	// Changed is called after a blob was written or deleted, and must not block. The calls
	// for one blob are in the order of their sequencers, and do not overlap. A crash may come
	// between a change and its call. Default: nothing is called.
	Changed func(BlobEvent)

	// Logger is told what an operator should know. Default: nobody is.
	Logger *slog.Logger
}

// An Account is one storage account. It is safe for use by many goroutines.
type Account struct {
	options Options
	key     []byte
	store   blobStore
	index   blobIndex
	uploads blockUploads
	changes changeNumbers

	mu       sync.Mutex
	closed   bool
	broken   error          // why nothing is served any more
	open     int            // requests
	requests sync.WaitGroup // grows only while mu is held and closed is false
	closing  chan struct{}  // closed by Close
	broke    chan error     // holds one
}

// ErrClosed reports a request after Close.
var ErrClosed = errors.New("the embedded account is closed")

var accountName = regexp.MustCompile(`^[a-z0-9]{3,24}$`)

// Open opens the account in o.Dir. It starts no goroutine.
func Open(o Options) (*Account, error) {
	o.Account = cmp.Or(o.Account, WellKnownAccount)
	o.Key = cmp.Or(o.Key, WellKnownKey)
	o.MaxBlob = cmp.Or(o.MaxBlob, 1<<30)
	o.MaxUncommitted = cmp.Or(o.MaxUncommitted, 4<<30)
	o.MaxRequests = cmp.Or(o.MaxRequests, 256)
	o.Logger = cmp.Or(o.Logger, slog.New(slog.DiscardHandler))
	if o.Clock == nil {
		o.Clock = time.Now
	}
	if !accountName.MatchString(o.Account) {
		return nil, fmt.Errorf("account name %q: want 3 to 24 characters of a-z 0-9", o.Account)
	}
	key, err := base64.StdEncoding.DecodeString(o.Key)
	if err != nil || len(key) == 0 {
		return nil, errors.New("the account's key: want base64")
	}
	var s blobStore = memoryStore{}
	if o.Dir != "" {
		if s, err = openFolder(o.Dir, o.Claim, onSystem); err != nil {
			return nil, fmt.Errorf("open the blobs in %s: %w", o.Dir, err)
		}
	}
	a := newAccount(o, key, s)
	if err := a.loadStored(); err != nil {
		return nil, errors.Join(fmt.Errorf("open the blobs in %s: %w", o.Dir, err), s.closeStore())
	}
	return a, nil
}

func newAccount(o Options, key []byte, s blobStore) *Account {
	return &Account{
		options: o, key: key, store: s, closing: make(chan struct{}), broke: make(chan error, 1),
		uploads: blockUploads{most: o.MaxUncommitted, clock: o.Clock},
	}
}

// loadStored finds what is stored, and makes the containers that are to be there.
func (a *Account) loadStored() error {
	if err := a.store.loadAll(func(container string, properties *version, blobs []*version) error {
		a.changes.startAfter(blobs)
		return a.index.addContainer(container, properties, blobs)
	}); err != nil {
		return err
	}
	for _, name := range a.options.Containers {
		if err := checkContainer(name); err != nil {
			return err
		}
		if _, ok := a.index.findContainer(name); ok {
			continue
		}
		if err := a.makeContainer(name, nil); err != nil {
			return err
		}
	}
	return nil
}

// Name is the account's name.
func (a *Account) Name() string { return a.options.Account }

// Key is the account's key in base64.
func (a *Account) Key() string { return a.options.Key }

// Endpoint is the URL to give to a client that uses Transport.
func (a *Account) Endpoint() string { return a.endpointAt("http", "embedded.localhost") }

func (a *Account) endpointAt(scheme, host string) string {
	return scheme + "://" + host + "/" + a.options.Account
}

// ConnectionString is what clients connect with. An empty address is for those
// that use Transport; others give the host and port of a listener.
func (a *Account) ConnectionString(address string) string {
	return a.connectionString("http", cmp.Or(address, "embedded.localhost"))
}

// TLSConnectionString is ConnectionString for the address of a listener with Door.TLS.
func (a *Account) TLSConnectionString(address string) string {
	return a.connectionString("https", address)
}

func (a *Account) connectionString(scheme, address string) string {
	return fmt.Sprintf("DefaultEndpointsProtocol=%s;AccountName=%s;AccountKey=%s;BlobEndpoint=%s;",
		scheme, a.options.Account, a.options.Key, a.endpointAt(scheme, address))
}

// beginRequest counts a request as under way, unless there is a reason to refuse it, such as
// that so many are.
func (a *Account) beginRequest(most int) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	switch {
	case a.closed:
		return ErrClosed
	case a.broken != nil:
		return a.broken
	case a.open >= most:
		return newBlobError(503, "ServerBusy", "%d requests are under way, which is the most", a.open)
	}
	a.open++
	a.requests.Add(1)
	return nil
}

func (a *Account) endRequest() {
	a.mu.Lock()
	a.open--
	a.mu.Unlock()
	a.requests.Done()
}

// Broken yields an error, once, when the disk has failed and nothing is served any
// more until the account is opened again.
func (a *Account) Broken() <-chan error { return a.broke }

// breakDown ends all service: err says that nobody knows what is on disk.
func (a *Account) breakDown(err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.broken == nil {
		a.broke <- err
		a.broken = errors.New("the disk failed; the log of the account says how") // which is not for everybody
		a.options.Logger.Error("blob storage stops: the disk failed; open the account again", "error", err)
	}
}

// ErrNoFolder reports an account in memory, which has no files.
var ErrNoFolder = errors.New("the account is in memory and has no folder")

// Hold keeps the files of blobs that are deleted from now on for [datafolder.Hold.Each], until
// it is released. The blobs themselves are gone at once. An account in memory fails with
// ErrNoFolder.
func (a *Account) Hold() (*datafolder.Hold, error) {
	f, ok := a.store.(*folderStore)
	if !ok {
		return nil, ErrNoFolder
	}
	return f.remover.Hold(f.root)
}

// Temporary names what a copy of the folder leaves out.
func (a *Account) Temporary() []string { return []string{lockFile, unfinished} }

// Close waits for the requests under way and closes the store. Blobs that are
// being read can be read to their end. Closing twice does no harm.
func (a *Account) Close() error {
	a.mu.Lock()
	closed := a.closed
	a.closed = true
	if !closed {
		close(a.closing)
	}
	a.mu.Unlock()
	a.requests.Wait()
	if closed {
		return nil
	}
	a.uploads.clearAll()
	return a.store.closeStore()
}
