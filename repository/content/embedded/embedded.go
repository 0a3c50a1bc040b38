package embedded

import (
	"cmp"
	"encoding/base64"
	"errors"
	"fmt"
	"log/slog"
	"regexp"
	"sync"
	"sync/atomic"
	"time"

	"github.com/messagehub/messagehub/cosmos/embedded/datafolder"
)

// The account of Azurite and its predecessors.
const (
	WellKnownAccount = "devstoreaccount1"
	WellKnownKey     = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
)

// Options configure an Account. The zero value configures an empty account in memory.
type Options struct {
	// Dir is the folder of the account. Open creates the folder if it does not exist. No other account
	// may use the folder. Default: the data is in memory, and Close discards the data.
	Dir string

	// Claim names the data folder to which the account in Dir must belong. Default: the data folder is
	// not checked.
	Claim datafolder.Claim

	// Account is the account's name. Default: WellKnownAccount.
	Account string

	// Key is the account's key in base64. Default: WellKnownKey.
	Key string

	// TrustTokens accepts every token of Microsoft Entra ID, with all rights. Tokens are not verified.
	TrustTokens bool

	// Containers are the names of containers that Open creates if they do not exist.
	Containers []string

	// MaxBlob bounds the bytes of one blob. Default: 1 GiB.
	MaxBlob int64

	// MaxUncommitted bounds the bytes of all uncommitted blocks. Default: 4 GiB.
	MaxUncommitted int64

	// MaxMemory bounds the bytes of all contents of an account in memory, including uncommitted blocks.
	// A write that would exceed MaxMemory fails with 507. Default: 4 GiB.
	MaxMemory int64

	// MaxRequests bounds the concurrent requests; further requests get 503. A quarter of MaxRequests is
	// reserved for Transport, so that network clients cannot lock out the process. Default: 256.
	MaxRequests int

	// Clock provides the time of Last-Modified. Default: time.Now. The dates of requests are always
	// compared with time.Now, because clients set them by the real time.
	Clock func() time.Time

	// Changed is called after a blob was written or deleted, and must not block. The calls for one blob
	// are in the order of their sequencers, and do not overlap. If the process dies between a change and
	// its call, Changed is never called for this change. Default: no call.
	Changed func(BlobEvent)

	// Logger receives the log. Default: no log.
	Logger *slog.Logger
}

// An Account is one storage account. It is safe for concurrent use.
type Account struct {
	options Options
	key     []byte
	store   blobStore
	index   blobIndex
	uploads blockUploads
	changes changeNumbers
	service atomic.Pointer[serviceProperties] // nil until a client sets service properties

	mu       sync.Mutex
	closed   bool
	broken   error          // nil, or the error after which all requests are refused
	open     int            // number of running requests
	requests sync.WaitGroup // grows only while mu is held and closed is false
	closing  chan struct{}  // closed by Close
	broke    chan error     // channel of Broken; capacity 1
}

// ErrClosed reports a request after Close.
var ErrClosed = errors.New("the embedded account is closed")

var accountName = regexp.MustCompile(`^[a-z0-9]{3,24}$`)

// Open opens the account in o.Dir. It does not start goroutines.
func Open(o Options) (*Account, error) {
	o.Account = cmp.Or(o.Account, WellKnownAccount)
	o.Key = cmp.Or(o.Key, WellKnownKey)
	o.MaxBlob = cmp.Or(o.MaxBlob, 1<<30)
	o.MaxUncommitted = cmp.Or(o.MaxUncommitted, 4<<30)
	o.MaxMemory = cmp.Or(o.MaxMemory, 4<<30)
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
	var s blobStore = newMemoryStore(o.MaxMemory)
	if o.Dir != "" {
		if s, err = openFolder(o.Dir, o.Claim, newSystemFiles); err != nil {
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
		uploads: blockUploads{maxBytes: o.MaxUncommitted, clock: o.Clock},
	}
}

// loadStored loads the stored blobs, and creates missing containers of Options.Containers.
func (a *Account) loadStored() error {
	if err := a.store.loadAll(func(container string, properties *version, blobs []*version) error {
		if container == accountItself {
			a.service.Store(properties.Service)
			return nil
		}
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

// Name returns the account's name.
func (a *Account) Name() string { return a.options.Account }

// Key returns the account's key in base64.
func (a *Account) Key() string { return a.options.Key }

// Endpoint returns the URL for a client that uses Transport.
func (a *Account) Endpoint() string { return a.endpointAt("http", "embedded.localhost") }

func (a *Account) endpointAt(scheme, host string) string {
	return scheme + "://" + host + "/" + a.options.Account
}

// ConnectionString returns the connection string for clients. address is the host and port of a listener,
// or empty for clients that use Transport.
func (a *Account) ConnectionString(address string) string {
	return a.connectionString("http", cmp.Or(address, "embedded.localhost"))
}

// TLSConnectionString returns the connection string for clients of a listener with ServeOptions.TLS.
// address is the host and port of the listener.
func (a *Account) TLSConnectionString(address string) string {
	return a.connectionString("https", address)
}

func (a *Account) connectionString(scheme, address string) string {
	return fmt.Sprintf("DefaultEndpointsProtocol=%s;AccountName=%s;AccountKey=%s;BlobEndpoint=%s;",
		scheme, a.options.Account, a.options.Key, a.endpointAt(scheme, address))
}

// beginRequest counts a running request. It returns an error if the account is closed or broken, or if
// limit requests are running.
func (a *Account) beginRequest(limit int) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	switch {
	case a.closed:
		return ErrClosed
	case a.broken != nil:
		return a.broken
	case a.open >= limit:
		return newBlobError(503, "ServerBusy", "%d requests are running, which is the limit", a.open)
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

// Broken returns a channel that receives one error when the disk has failed. After this failure, the
// account refuses all requests until it is opened again.
func (a *Account) Broken() <-chan error { return a.broke }

// endService makes the account refuse all further requests, because the state of the disk is unknown
// after err.
func (a *Account) endService(err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.broken == nil {
		a.broke <- err
		a.broken = errors.New("the disk failed; see the log of the account") // clients must not see err
		a.options.Logger.Error("blob storage stops: the disk failed; open the account again", "error", err)
	}
}

// ErrNoFolder reports an account in memory, which has no files.
var ErrNoFolder = errors.New("the account is in memory and has no folder")

// Hold starts a hold: until the hold is released, the files of deleted blobs are kept for
// [datafolder.Hold.Each]. The deleted blobs are not readable. Hold fails with ErrNoFolder if the account
// is in memory.
func (a *Account) Hold() (*datafolder.Hold, error) {
	f, ok := a.store.(*folderStore)
	if !ok {
		return nil, ErrNoFolder
	}
	return f.remover.Hold(f.root)
}

// Temporary returns the names of files and folders that a copy of the folder must omit.
func (a *Account) Temporary() []string { return []string{lockFile, unfinished} }

// Close waits for running requests and closes the store. Open readers of blobs stay valid.
// Further calls have no effect.
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
