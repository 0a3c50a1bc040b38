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

// The account name and key that Azurite and older emulators use.
const (
	WellKnownAccount = "devstoreaccount1"
	WellKnownKey     = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
)

// Options configure an Account. The zero value configures an empty account in memory.
type Options struct {
	// Dir is the folder of the account. It is created if it does not exist, and must not be shared. If Dir is empty,
	// the data is in memory, and Close discards it.
	Dir string

	// Claim identifies the data folder that must contain the account in Dir. By default, the data folder is not
	// checked.
	Claim datafolder.Claim

	// Account is the name of the account. Default: WellKnownAccount.
	Account string

	// Key is the account's key in base64. Default: WellKnownKey.
	Key string

	// TrustTokens grants all rights for every token of Microsoft Entra ID, without verification.
	TrustTokens bool

	// Containers are created by Open if they do not exist.
	Containers []string

	// MaxBlob limits the bytes of one blob. Default: 1 GiB.
	MaxBlob int64

	// MaxUncommitted limits the total bytes of uncommitted blocks. Default: 4 GiB.
	MaxUncommitted int64

	// MaxMemory limits the total content of an account in memory, including uncommitted blocks. A write above the limit
	// fails with 507. Default: 4 GiB.
	MaxMemory int64

	// MaxRequests limits the concurrent requests. Requests above the limit fail with 503. Only Transport can use the
	// last quarter, so that network clients cannot lock out this process. Default: 256.
	MaxRequests int

	// Clock provides the time for Last-Modified. Default: time.Now. The dates of requests are always compared with
	// time.Now, because clients set them with the system clock.
	Clock func() time.Time

	// Changed is called after a blob was written or deleted. It must not block. For one blob, calls do not overlap and
	// have the order of their sequencers. If the process dies between a change and the call, the call is lost.
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
	service atomic.Pointer[serviceProperties] // service is nil until a client sets service properties

	mu       sync.Mutex
	closed   bool
	broken   error          // error with which all requests fail after a disk failure, or nil
	open     int            // number of running requests
	requests sync.WaitGroup // incremented only while mu is held and closed is false
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

// loadStored loads the stored blobs. It creates the containers in Options.Containers that are missing.
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

// Endpoint returns the URL of the account for clients that use Transport.
func (a *Account) Endpoint() string { return a.endpointAt("http", "embedded.localhost") }

func (a *Account) endpointAt(scheme, host string) string {
	return scheme + "://" + host + "/" + a.options.Account
}

// ConnectionString returns a connection string for clients. The address is the host and port of a listener, or empty
// for clients that use Transport.
func (a *Account) ConnectionString(address string) string {
	return a.connectionString("http", cmp.Or(address, "embedded.localhost"))
}

// TLSConnectionString returns a connection string for clients of a listener with TLS. The address is the host and port
// of the listener.
func (a *Account) TLSConnectionString(address string) string {
	return a.connectionString("https", address)
}

func (a *Account) connectionString(scheme, address string) string {
	return fmt.Sprintf("DefaultEndpointsProtocol=%s;AccountName=%s;AccountKey=%s;BlobEndpoint=%s;",
		scheme, a.options.Account, a.options.Key, a.endpointAt(scheme, address))
}

// beginRequest counts a running request. It fails if the account is closed or broken, or if limit requests are already
// running.
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

// Broken returns a channel that receives an error if the disk fails. After a disk failure, all requests fail until the
// account is opened again.
func (a *Account) Broken() <-chan error { return a.broke }

// endService makes all later requests fail, because after err the state of the disk is unknown.
func (a *Account) endService(err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.broken == nil {
		a.broke <- err
		a.broken = errors.New("the disk failed; see the log of the account") // this text goes to clients, which must not see err
		a.options.Logger.Error("blob storage stops: the disk failed; open the account again", "error", err)
	}
}

// ErrNoFolder reports an account in memory, which has no files.
var ErrNoFolder = errors.New("the account is in memory and has no folder")

// Hold starts a hold. Until it is released, the files of deleted blobs are retained for [datafolder.Hold.Each], but
// clients cannot read them. An account in memory fails with ErrNoFolder.
func (a *Account) Hold() (*datafolder.Hold, error) {
	f, ok := a.store.(*folderStore)
	if !ok {
		return nil, ErrNoFolder
	}
	return f.remover.Hold(f.root)
}

// Temporary returns the names of files and folders that a backup of the folder must omit.
func (a *Account) Temporary() []string { return []string{lockFile, unfinished} }

// Close waits for running requests and closes the store. Blobs that are open for reading stay readable. Further calls
// have no effect.
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
