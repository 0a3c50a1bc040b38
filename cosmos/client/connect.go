package client

import (
	"cmp"
	"fmt"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/tracing"
	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"

	"github.com/messagehub/messagehub/domain"
)

// A Connection is the address of a database and the credential for it.
type Connection struct {
	Endpoint   string                 // URL of the account: https://….documents.azure.com:443/
	Key        string                 // account key; for emulators
	Credential azcore.TokenCredential // used if Key is empty
	Database   string                 // default "messagehub"
	Transport  policy.Transporter     // default: a pooled HTTP transport
	Tracing    tracing.Provider       // records spans of requests; the zero Provider records none
	// Consistency overrides the default consistency level that the account reports. It does not override
	// the regions of the account.
	Consistency string
}

// A Database is a connected Cosmos database. Any number of clients may share it.
type Database struct {
	account     *azcosmos.Client
	name        string
	consistency string                            // overrides the consistency level of the account; empty: no override
	properties  atomic.Pointer[accountProperties] // the properties that azcosmos read last
	hangUp      func()
}

// Connect returns a Database. It makes no request; the first call shows whether the account can be
// reached. The caller closes the Database.
func Connect(c Connection) (*Database, error) {
	db := &Database{name: cmp.Or(c.Database, "messagehub"), consistency: c.Consistency, hangUp: func() {}}
	db.properties.Store(&accountProperties{})
	transport := c.Transport
	if transport == nil {
		own := newHTTPClient()
		transport, db.hangUp = own, own.CloseIdleConnections
	}
	opts := &azcosmos.ClientOptions{ClientOptions: azcore.ClientOptions{
		Transport: &accountObserver{next: noResendTransport{transport}, db: db},
		// Only a Call resends a write that may have been carried out, because it can interpret the
		// result. azcosmos would resend a write whose HTTP/2 stream broke, and report its
		// own success as a conflict; see noResendTransport.
		Retry: policy.RetryOptions{
			MaxRetries:  -1,
			ShouldRetry: func(*http.Response, error) bool { return false },
		},
		Telemetry:       policy.TelemetryOptions{ApplicationID: "messagehub"},
		TracingProvider: c.Tracing,
		PerCallPolicies: []policy.Policy{rawPropertiesPolicy{}, noDiagnosticsPolicy{}},
	}}
	var err error
	switch {
	case c.Key != "":
		var key azcosmos.KeyCredential
		if key, err = azcosmos.NewKeyCredential(c.Key); err == nil {
			db.account, err = azcosmos.NewClientWithKey(c.Endpoint, key, opts)
		}
	case c.Credential != nil:
		db.account, err = azcosmos.NewClient(c.Endpoint, c.Credential, opts)
	default:
		err = fmt.Errorf("neither a key nor a credential is given")
	}
	if err != nil {
		return nil, domain.Errorf(domain.Invalid, "connect to Cosmos at %s: %w", c.Endpoint, err)
	}
	return db, nil
}

// Container returns a container of the database, whether it exists or not. It makes no
// request, and fails with Invalid only if the name is empty.
func (db *Database) Container(name string) (*azcosmos.ContainerClient, error) {
	container, err := db.account.NewContainer(db.name, name)
	if err != nil {
		return nil, domain.Errorf(domain.Invalid, "container %q: %w", name, err)
	}
	return container, nil
}

// Close closes the connections that Connect has opened. It does not close Connection.Transport.
func (db *Database) Close() {
	db.account.Close()
	db.hangUp()
}

func newHTTPClient() *http.Client {
	t := http.DefaultTransport.(*http.Transport).Clone()
	t.MaxIdleConns = 1000
	t.MaxIdleConnsPerHost = 256
	t.ResponseHeaderTimeout = 10 * time.Second
	return &http.Client{Transport: t}
}
