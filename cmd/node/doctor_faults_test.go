package node_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/to"
	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus/admin"
	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/api/identity/identitytest"
	bus "github.com/messagehub/messagehub/api/servicebus/embedded"
	"github.com/messagehub/messagehub/cmd/node"
	"github.com/messagehub/messagehub/cmd/node/config"
	"github.com/messagehub/messagehub/cmd/node/doctor"
	"github.com/messagehub/messagehub/cosmos/embedded/datafolder"
	"github.com/messagehub/messagehub/cosmos/level"
)

// A plantedFault is a fault that a test introduces, with the finding that the
// doctor must report.
type plantedFault struct {
	name  string
	plant func(d *inspectedHub)

	check  string
	state  doctor.State
	text   string // must occur in the finding's text
	remedy string // must occur in the finding's remedy
}

// isFound reports whether all contains the expected finding.
func (p *plantedFault) isFound(all []doctor.Finding) bool {
	for _, f := range find(all, p.check) {
		if f.State == p.state && strings.Contains(f.Text, p.text) && strings.Contains(f.Remedy, p.remedy) {
			return true
		}
	}
	return false
}

// run introduces the fault and checks that the doctor reports it.
func (p *plantedFault) run(t *testing.T, keys ...bus.Key) {
	t.Helper()
	d := newInspectedHub(t, keys...)
	p.plant(d)
	began := time.Now()
	report := d.diagnose()
	require.True(t, p.isFound(report.Findings), "%+v", report.Findings)
	require.Less(t, time.Since(began), 15*time.Second)
	require.LessOrEqual(t, report.Units, 50.0)
	for _, f := range report.Findings {
		switch f.State {
		case doctor.Fault, doctor.Warning:
			require.NotEmpty(t, f.Remedy, "%+v", f)
			if f.Check == "configuration" { // a fault that consists of removed settings also causes findings about the configuration
				continue
			}
			require.Equal(t, strings.SplitN(p.check, ".", 2)[0], strings.SplitN(f.Check, ".", 2)[0], "another part is blamed: %+v", f)
		case doctor.NotChecked:
			require.Contains(t, f.Text, "not checked, since ")
		case doctor.OK:
		}
	}
}

func TestDoctor_FindsFaultsOfThisMachine(t *testing.T) {
	for _, p := range []plantedFault{
		{"a file in place of the data folder", func(d *inspectedHub) {
			require.NoError(d, os.WriteFile(d.cfg.Data, nil, 0o600))
			d.cfg.Cosmos.Endpoint, d.cfg.Cosmos.Key = "", ""
		}, "folder", doctor.Fault, "it is not a folder", "choose another with --data"},
		{"a restore that was interrupted", func(d *inspectedHub) {
			d.useDataFolder()
			require.NoError(d, os.MkdirAll(filepath.Join(d.cfg.Data, ".restore"), 0o700))
		}, "folder", doctor.Fault, "a restore into", "run messagehub restore again"},
		{"a store that is missing", func(d *inspectedHub) {
			d.useDataFolder()
			_, err := startOnce(d.T, d.cfg.Data)
			require.NoError(d, err)
			require.NoError(d, os.RemoveAll(filepath.Join(d.cfg.Data, "cosmos")))
		}, "folder", doctor.Fault, "is missing or empty", "never edit the file identity"},
		{"a store of another folder", func(d *inspectedHub) {
			d.useDataFolder()
			d.cfg.Blob.Endpoint, d.cfg.Blob.Key = "", ""
			_, err := startOnce(d.T, d.cfg.Data)
			require.NoError(d, err)
			require.NoError(d, os.WriteFile(filepath.Join(d.cfg.Data, "content", datafolder.MarkFile), []byte("another\n"), 0o600))
		}, "folder", doctor.Fault, "belongs to another data folder", "never edit the file identity"},
		{"a damaged identity", func(d *inspectedHub) {
			d.useDataFolder()
			require.NoError(d, os.WriteFile(filepath.Join(d.cfg.Data, datafolder.IdentityFile), []byte("{"), 0o600))
		}, "folder", doctor.Fault, "its file identity is damaged", "never edit the file identity"},
		{"a link in the data folder", func(d *inspectedHub) {
			d.useDataFolder()
			require.NoError(d, os.Symlink(d.TempDir(), filepath.Join(d.cfg.Data, "cosmos")))
		}, "folder", doctor.Fault, "is a link", "mount what it leads to"},
		{"a data folder that others may read", func(d *inspectedHub) {
			d.useDataFolder()
			require.NoError(d, os.Chmod(d.cfg.Data, 0o755))
		}, "folder", doctor.Warning, "other users may read or write", "chmod 700"},
		{"another process with the data folder", func(d *inspectedHub) {
			d.useDataFolder()
			root, err := os.OpenRoot(d.cfg.Data)
			require.NoError(d, err)
			d.Cleanup(func() { _ = root.Close() })
			lock, err := datafolder.Lock(root, "lock")
			require.NoError(d, err)
			d.Cleanup(func() { _ = lock.Close() })
		}, "lock", doctor.Fault, "another process has the data folder", "stop that process"},
		{"a full disk", func(d *inspectedHub) {
			d.useDataFolder()
			d.cfg.Limits.FreeDisk = 1 << 60
		}, "space", doctor.Fault, "less than limits.free-disk", "free space on it"},
		{"a port of another program", func(d *inspectedHub) { d.cfg.Listen = serveNoHub(d.T) }, "ports", doctor.Fault, "another process has this port", "choose another port with --listen"},
		{"a port of a hub with another data folder", func(d *inspectedHub) {
			d.useDataFolder()
			other, _ := start(d.T, settings(d.TempDir()), node.Options{})
			d.cfg.Listen = other.Addr().String()
		}, "ports", doctor.Fault, "another process has this port", "choose another port with --listen"},
		{"an address of another machine", func(d *inspectedHub) { d.cfg.Listen = "192.0.2.1:80" }, "ports", doctor.Fault, "does not have that address", "choose one of its own with --listen"},
		{"a certificate that has expired", func(d *inspectedHub) {
			d.cfg.TLS.Certificate, d.cfg.TLS.Key = writeCertificate(d.T, time.Now().Add(-time.Hour))
		}, "certificate", doctor.Fault, "has expired at", "renew it"},
		{"a certificate that expires soon", func(d *inspectedHub) {
			d.cfg.TLS.Certificate, d.cfg.TLS.Key = writeCertificate(d.T, time.Now().Add(5*24*time.Hour+time.Hour))
		}, "certificate", doctor.Warning, "expires in 5 days", "renew it"},
		{"the key of another certificate", func(d *inspectedHub) {
			d.cfg.TLS.Certificate, _ = writeCertificate(d.T, time.Now().Add(time.Hour))
			_, d.cfg.TLS.Key = writeCertificate(d.T, time.Now().Add(time.Hour))
		}, "certificate", doctor.Fault, "private key does not match public key", "correct the files"},
		{"payloads on this machine, and events on Azure", func(d *inspectedHub) { d.cfg.Blob = config.Default().Blob }, "configuration", doctor.Warning, "only one node may use the account", "set blob.endpoint"},
		{"a key of Azure", func(d *inspectedHub) { d.cfg.Cosmos.Endpoint = "https://a.documents.azure.com:443/" }, "configuration", doctor.Warning, "cosmos.key: a key of Azure gives all rights", "use an identity"},
		{"no key for the secrets of subscriptions", func(d *inspectedHub) { d.cfg.Push.SecretKey = "" }, "configuration", doctor.Warning, "payloads are on Azure", "set push.secret-key-file"},
		{"an audience that its issuer never writes", func(d *inspectedHub) {
			d.cfg.OIDC.Issuers, d.cfg.OIDC.Audiences = []string{"https://login.microsoftonline.com/t/v2.0"}, []string{"api://messagehub"}
			d.opts.LookUp = func(context.Context, string) ([]netip.Addr, error) { return nil, errors.New("no network") }
		}, "configuration", doctor.Warning, "issues tokens of version 2", "application (client) id"},
	} {
		t.Run(p.name, func(t *testing.T) {
			d := newInspectedHub(t)
			p.plant(d)
			report := node.Diagnose(t.Context(), &d.cfg, node.DoctorOptions{}, d.opts)
			require.True(t, p.isFound(report.Findings), "%+v", report.Findings)
			require.Zero(t, report.Units)
		})
	}
}

// useDataFolder makes the hub store its data in a data folder, which it
// creates.
func (d *inspectedHub) useDataFolder() {
	d.cfg.Cosmos.Endpoint, d.cfg.Cosmos.Key = "", ""
	require.NoError(d, os.MkdirAll(d.cfg.Data, 0o700))
}

// serveNoHub starts an HTTP server that is not a hub, and returns its address.
func serveNoHub(t *testing.T) string {
	server := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(server.Close)
	return server.Listener.Addr().String()
}

// writeCertificate writes a certificate for localhost and its key, and returns
// the names of both files.
func writeCertificate(t *testing.T, until time.Time) (certificate, key string) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "hub"}, DNSNames: []string{"localhost"},
		NotBefore: time.Now().Add(-24 * time.Hour), NotAfter: until,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &private.PublicKey, private)
	require.NoError(t, err)
	text, err := x509.MarshalECPrivateKey(private)
	require.NoError(t, err)
	dir := t.TempDir()
	certificate, key = filepath.Join(dir, "hub.crt"), filepath.Join(dir, "hub.key")
	require.NoError(t, os.WriteFile(certificate, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600))
	require.NoError(t, os.WriteFile(key, pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: text}), 0o600))
	return certificate, key
}

func TestDoctor_FindsFaultsOfTheCosmosAccount(t *testing.T) {
	plants := []plantedFault{
		{"a name that does not exist", func(d *inspectedHub) {
			d.cfg.Cosmos.Endpoint = "https://absent.example:443/"
			d.opts.LookUp = func(_ context.Context, host string) ([]netip.Addr, error) {
				return nil, &net.DNSError{Err: "no such host", Name: host, IsNotFound: true}
			}
		}, "cosmos.name", doctor.Fault, "the name absent.example cannot be looked up", "correct cosmos.endpoint"},
		{
			"a port where no service listens", func(d *inspectedHub) { d.cfg.Cosmos.Endpoint = "http://" + closedPort(d.T) + "/" },
			"cosmos.connection", doctor.Fault, "is refused", "check that the service runs there",
		},
		{"a certificate of an unknown authority", func(d *inspectedHub) {
			server := httptest.NewUnstartedServer(http.NotFoundHandler())
			server.Config.ErrorLog = log.New(io.Discard, "", 0)
			server.StartTLS()
			d.Cleanup(server.Close)
			d.cfg.Cosmos.Endpoint = server.URL + "/"
		}, "cosmos.connection", doctor.Fault, "this machine does not trust the certificate", "if a proxy inspects TLS"},
		{
			"a server without TLS", func(d *inspectedHub) {
				d.cfg.Cosmos.Endpoint = strings.Replace(d.cfg.Cosmos.Endpoint, "http:", "https:", 1)
			},
			"cosmos.connection", doctor.Fault, "does not speak TLS", "correct the scheme or the port",
		},
		{
			"a clock that is behind", func(d *inspectedHub) { d.cfg.Cosmos.Endpoint = serveAt(d, 10*time.Minute) },
			"cosmos.clock", doctor.Fault, "the clock of this machine is 10m0s behind", "synchronize the clock",
		},
		{
			"a clock that is a little ahead", func(d *inspectedHub) { d.cfg.Cosmos.Endpoint = serveAt(d, -time.Minute) },
			"cosmos.clock", doctor.Warning, "the clock of this machine is 1m", "synchronize the clock",
		},
		{"another key", func(d *inspectedHub) { d.cfg.Cosmos.Key = "b3RoZXI=" }, "cosmos.rights", doctor.Fault, "the account grants no right", "check cosmos.key"},
		{"a firewall", func(d *inspectedHub) {
			d.refuseDocuments = func(*http.Request) http.HandlerFunc {
				return answerWith(http.StatusForbidden, `{"message":"Request originated from IP 192.0.2.1 through public internet. This is blocked by your Cosmos DB account firewall settings."}`)
			}
		}, "cosmos.rights", doctor.Fault, "the account grants no right", "allow the addresses of this machine in the firewall"},
		{"a container that is missing", func(d *inspectedHub) { d.recreateContainer("streams", nil) }, "cosmos.containers", doctor.Fault, "container streams does not exist", "run messagehub provision"},
		{"all containers missing", func(d *inspectedHub) { d.cfg.Cosmos.Database = "other" }, "cosmos.containers", doctor.Fault, "container catalog does not exist", "run messagehub provision"},
		{"a container without TTL", func(d *inspectedHub) {
			d.changeContainer("bundles", func(p *azcosmos.ContainerProperties) { p.DefaultTimeToLive = nil })
		}, "cosmos.containers", doctor.Fault, "container bundles: its default TTL is not set", "run messagehub provision"},
		{"a container that deletes what it holds", func(d *inspectedHub) {
			d.changeContainer("catalog", func(p *azcosmos.ContainerProperties) { p.DefaultTimeToLive = to.Ptr[int32](3600) })
		}, "cosmos.containers", doctor.Fault, "container catalog: its default TTL is 3600", "run messagehub provision"},
		{"a container without an index", func(d *inspectedHub) {
			d.changeContainer("cabinet", func(p *azcosmos.ContainerProperties) {
				p.IndexingPolicy.IncludedPaths = p.IndexingPolicy.IncludedPaths[:2]
			})
		}, "cosmos.containers", doctor.Fault, "container cabinet: its indexing policy does not index /until/?", "run messagehub provision"},
		{"a container with more indexes", func(d *inspectedHub) {
			d.changeContainer("cabinet", func(p *azcosmos.ContainerProperties) {
				p.IndexingPolicy.IncludedPaths = append(p.IndexingPolicy.IncludedPaths, azcosmos.IncludedPath{Path: "/weight/?"})
			})
		}, "cosmos.containers", doctor.Warning, "also indexes /weight/?", "run messagehub provision"},
		{"another partition key", func(d *inspectedHub) {
			d.recreateContainer("objects", &azcosmos.ContainerProperties{ID: "objects", PartitionKeyDefinition: azcosmos.PartitionKeyDefinition{Paths: []string{"/id"}, Version: 2}})
		}, "cosmos.containers", doctor.Fault, "its partition key is /id, want", "create it again"},
		{"no right to read metadata", func(d *inspectedHub) {
			d.refuseDocuments = func(r *http.Request) http.HandlerFunc {
				if strings.Contains(r.URL.Path, "/colls/") && !strings.Contains(r.URL.Path, "/docs") {
					return answerWith(http.StatusForbidden, "{}")
				}
				return nil
			}
		}, "cosmos.containers", doctor.Fault, "the credential may not read its properties", "readMetadata"},
		{"an account that answers 503", func(d *inspectedHub) {
			d.refuseDocuments = func(r *http.Request) http.HandlerFunc {
				if strings.Contains(r.URL.Path, "/docs") {
					return answerWith(http.StatusServiceUnavailable, "{}")
				}
				return nil
			}
		}, "cosmos.rights", doctor.Fault, "could not be tested", "run messagehub doctor --online again"},
		{"a node of another version", func(d *inspectedHub) {
			d.opts.Version = "2.0.0"
			start(d.T, d.cfg, node.Options{Version: "1.0.0", ReadinessInterval: -1})
		}, "cosmos.nodes", doctor.Warning, "1 of version 1.0.0", "upgrade them"},
		{"a store of a newer version", func(d *inspectedHub) {
			start(d.T, d.cfg, node.Options{Version: "2.0.0", ReadinessInterval: -1, Levels: level.Table{{Since: "1.0.0"}, {Since: "2.0.0"}}})
		}, "cosmos.nodes", doctor.Fault, "the store has level 2", "use that version on this machine"},
		{
			"a proxy that refuses", func(d *inspectedHub) { d.useOnlyProxy(answerWith(http.StatusForbidden, "")) },
			"cosmos.connection", doctor.Fault, "does not connect to absent.example", "add it to NO_PROXY",
		},
		{
			"a proxy that wants a password", func(d *inspectedHub) { d.useOnlyProxy(answerWith(http.StatusProxyAuthRequired, "")) },
			"cosmos.connection", doctor.Fault, "asks for a password", "put user and password into HTTPS_PROXY",
		},
		{"a proxy that is away", func(d *inspectedHub) {
			d.useOnlyProxy(nil)
		}, "cosmos.connection", doctor.Fault, "cannot be reached", "correct HTTPS_PROXY"},
	}
	for _, right := range []string{"items/create", "items/read", "items/replace", "items/upsert", "items/delete", "executeQuery"} {
		plants = append(plants, plantedFault{
			"no right " + strings.ReplaceAll(right, "/", " "), func(d *inspectedHub) { d.refuseDocuments = refuseAction(right) },
			"cosmos.rights", doctor.Fault, "the credential does not have the right " + right, "check cosmos.key",
		})
	}
	for _, p := range plants {
		t.Run(p.name, func(t *testing.T) {
			t.Parallel()
			p.run(t)
		})
	}
}

// useOnlyProxy configures a Cosmos account and no other Azure service, and a
// proxy for all requests. The handler answer serves as the proxy. If answer is
// nil, the proxy is unreachable.
func (d *inspectedHub) useOnlyProxy(answer http.Handler) {
	proxy := "http://" + closedPort(d.T)
	if answer != nil {
		proxy = serveHTTP(d.T, answer)
	}
	d.cfg.Cosmos.Endpoint = "https://absent.example:443/"
	d.cfg.Blob, d.cfg.ServiceBus = config.Default().Blob, config.Default().ServiceBus
	d.cfg.Blob.Endpoint, d.cfg.ServiceBus.Connection = "", ""
	d.useProxy(proxy)
}

// closedPort returns an address on this machine at which no program listens.
func closedPort(t *testing.T) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer func() { require.NoError(t, l.Close()) }()
	return l.Addr().String()
}

// serveAt serves the Cosmos account with a clock that is ahead of the system
// clock.
func serveAt(d *inspectedHub, ahead time.Duration) string {
	return serveHTTP(d.T, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Date", time.Now().Add(ahead).UTC().Format(http.TimeFormat))
		d.engine.Handler().ServeHTTP(w, r)
	}))
}

func TestDoctor_FindsFaultsOfTheStorageAccount(t *testing.T) {
	plants := []plantedFault{
		{"another key", func(d *inspectedHub) { d.cfg.Blob.Key = "b3RoZXI=" }, "blob.containers", doctor.Fault, "read container messagehub-content", ""},
		{"a container that is missing", func(d *inspectedHub) { d.cfg.Blob.Container = "other" }, "blob.containers", doctor.Fault, "container other-content does not exist", "run messagehub provision"},
	}
	for right, refuses := range map[string]func(*http.Request) bool{
		"write": func(r *http.Request) bool { return r.Method == http.MethodPut },
		"read": func(r *http.Request) bool {
			return r.Method == http.MethodGet && strings.Contains(r.URL.Path, "/doctor/")
		},
		"list":   func(r *http.Request) bool { return r.URL.Query().Get("comp") == "list" },
		"delete": func(r *http.Request) bool { return r.Method == http.MethodDelete },
	} {
		plants = append(plants, plantedFault{"no right to " + right, func(d *inspectedHub) {
			d.refuseBlobs = func(r *http.Request) http.HandlerFunc {
				if refuses(r) {
					return answerWith(http.StatusForbidden, "")
				}
				return nil
			}
		}, "blob.rights", doctor.Fault, "may not " + right + " blobs of the container messagehub-exchange", "check blob.key"})
	}
	for _, p := range plants {
		t.Run(p.name, func(t *testing.T) {
			t.Parallel()
			p.run(t)
		})
	}
}

func TestDoctor_FindsFaultsOfTheNamespace(t *testing.T) {
	listens, sends := bus.Key{Name: "listens", Secret: "bGlzdGVucw==", Rights: bus.Listen}, bus.Key{Name: "sends", Secret: "c2VuZHM=", Rights: bus.Send}
	for _, p := range []plantedFault{
		{"text that is no connection string", func(d *inspectedHub) { d.cfg.ServiceBus.Connection = "Endpoint" }, "servicebus.name", doctor.Fault, "it is not a connection string", "set it to Endpoint=sb://"},
		{"a port where no bus listens", func(d *inspectedHub) {
			d.cfg.ServiceBus.Connection = config.Secret("Endpoint=sb://" + closedPort(d.T) + ";SharedAccessKeyName=a;SharedAccessKey=b;UseDevelopmentEmulator=true")
		}, "servicebus.connection", doctor.Fault, "is refused", "check that the service runs there"},
		{"a key that may not send", func(d *inspectedHub) { d.useKey(listens) }, "servicebus.rights", doctor.Fault, "the credential may not send to the queue charges", "the rights Listen and Send"},
		{"a key that may not receive", func(d *inspectedHub) { d.useKey(sends) }, "servicebus.rights", doctor.Fault, "the credential may not receive from the queue dataavailable-fifo", "the rights Listen and Send"},
		{"another key", func(d *inspectedHub) { d.useKey(bus.Key{Name: "absent", Secret: "YWJzZW50"}) }, "servicebus.rights", doctor.Fault, "the credential may not receive from the queue dataavailable", "the rights Listen and Send"},
		{"a queue that is missing", func(d *inspectedHub) { d.changeQueue("charges-reply", nil) }, "servicebus.rights", doctor.Fault, "the queue charges-reply does not exist", "run messagehub provision"},
		{"a queue without sessions", func(d *inspectedHub) {
			d.changeQueue("dataavailable-fifo", func(p *admin.QueueProperties) { p.RequiresSession = to.Ptr(false) })
		}, "servicebus.rights", doctor.Fault, "the queue dataavailable-fifo has no sessions", "delete the queue when it is empty"},
		{"a queue with sessions", func(d *inspectedHub) {
			d.changeQueue("dataavailable", func(p *admin.QueueProperties) { p.RequiresSession = to.Ptr(true) })
		}, "servicebus.queues", doctor.Fault, "queue dataavailable is with sessions", "create it again"},
		{"a queue with a short lock", func(d *inspectedHub) {
			d.changeQueue("charges", func(p *admin.QueueProperties) { p.LockDuration = to.Ptr("PT5S") })
		}, "servicebus.queues", doctor.Warning, "lock duration PT5S, want PT1M", "run messagehub provision"},
		{"a queue with few deliveries", func(d *inspectedHub) {
			d.changeQueue("charges", func(p *admin.QueueProperties) { p.MaxDeliveryCount = to.Ptr[int32](1) })
		}, "servicebus.queues", doctor.Warning, "max delivery count 1, want 10", "run messagehub provision"},
		{"the tier Basic", func(d *inspectedHub) {
			d.refuseQueues = func(r *http.Request) http.HandlerFunc {
				if strings.Contains(r.URL.Path, "$namespaceinfo") && r.Header.Get("Authorization") != "" {
					return answerWith(http.StatusOK, namespaceInfo)
				}
				return nil
			}
		}, "servicebus.queues", doctor.Fault, "the namespace has the tier Basic", "Standard or Premium"},
	} {
		t.Run(p.name, func(t *testing.T) {
			t.Parallel()
			p.run(t, listens, sends)
		})
	}
}

const namespaceInfo = `<entry xmlns="http://www.w3.org/2005/Atom"><id>x</id><title type="text">ns</title><content type="application/xml">` +
	`<NamespaceInfo xmlns="http://schemas.microsoft.com/netservices/2010/10/servicebus/connect"><CreatedTime>2026-01-01T00:00:00Z</CreatedTime>` +
	`<MessagingSKU>Basic</MessagingSKU><MessagingUnits>0</MessagingUnits><ModifiedTime>2026-01-01T00:00:00Z</ModifiedTime><Name>ns</Name>` +
	`<NamespaceType>Messaging</NamespaceType></NamespaceInfo></content></entry>`

func TestDoctor_FindsFaultsOfIssuers(t *testing.T) {
	for _, p := range []plantedFault{
		{"an issuer that has another name", func(d *inspectedHub) {
			issuer := identitytest.Start(d.T)
			d.cfg.OIDC.Issuers, d.cfg.OIDC.Audiences = []string{issuer.URL + "/"}, []string{"messagehub"}
		}, "issuers", doctor.Fault, "it calls itself", "set oidc.issuer to that"},
		{"an issuer without keys", func(d *inspectedHub) {
			issuer := identitytest.Start(d.T)
			issuer.Break(func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path == "/keys" {
					_, _ = w.Write([]byte(`{"keys":[]}`))
					return
				}
				_, _ = w.Write([]byte(`{"issuer":"` + issuer.URL + `","jwks_uri":"` + issuer.URL + `/keys"}`))
			})
			d.cfg.OIDC.Issuers, d.cfg.OIDC.Audiences = []string{issuer.URL}, []string{"messagehub"}
		}, "issuers", doctor.Fault, "it has no key for RS256", "correct oidc.issuer"},
		{"an issuer that is away", func(d *inspectedHub) {
			d.cfg.OIDC.Issuers, d.cfg.OIDC.Audiences = []string{"http://" + closedPort(d.T)}, []string{"messagehub"}
		}, "issuers", doctor.Fault, "is refused", "check that the service runs there"},
	} {
		t.Run(p.name, func(t *testing.T) {
			t.Parallel()
			p.run(t)
		})
	}
}

func TestDoctor_NamesTheKeysOfAnIssuer(t *testing.T) {
	d := newInspectedHub(t)
	d.cfg.OIDC.Issuers, d.cfg.OIDC.Audiences = []string{identitytest.Start(t).URL}, []string{"messagehub"}
	found := find(d.diagnose().Findings, "issuers")
	require.Len(t, found, 1)
	require.Equal(t, "1 keys, for the audience messagehub", found[0].Text)
}

func TestDoctor_PassesForARunningHub(t *testing.T) {
	cfg := settings(t.TempDir())
	require.NoError(t, os.Chmod(cfg.Data, 0o700))
	n, _ := start(t, cfg, node.Options{})
	cfg.Listen = n.Addr().String()
	report := node.Diagnose(t.Context(), &cfg, node.DoctorOptions{Online: true}, node.Options{})
	for _, f := range report.Findings {
		require.Equal(t, doctor.OK, f.State, "%+v", f)
	}
	require.Contains(t, find(report.Findings, "lock")[0].Text, "the hub that runs at "+cfg.Listen)
	require.Contains(t, find(report.Findings, "ports")[0].Text, "the hub that runs has it")
	require.Zero(t, report.Units)
}

func TestDoctor_WithoutANetworkNamesEachPart(t *testing.T) {
	cfg := settings(t.TempDir())
	cfg.Cosmos.Endpoint, cfg.Cosmos.Key = "https://a.documents.azure.com:443/", "b3RoZXI="
	cfg.Blob.Endpoint, cfg.Blob.Key = "https://a.blob.core.windows.net", "b3RoZXI="
	cfg.ServiceBus.Connection = "Endpoint=sb://a.servicebus.windows.net/;SharedAccessKeyName=a;SharedAccessKey=b"
	cfg.OIDC.Issuers, cfg.OIDC.Audiences = []string{"https://issuer.example"}, []string{"messagehub"}
	opts := node.Options{LookUp: func(_ context.Context, host string) ([]netip.Addr, error) {
		return nil, &net.DNSError{Err: "server misbehaving", Name: host, IsTemporary: true}
	}}
	report := node.Diagnose(t.Context(), &cfg, node.DoctorOptions{Online: true}, opts)
	for _, check := range []string{"cosmos.name", "blob.name", "servicebus.name", "issuers"} {
		found := find(report.Findings, check)
		require.Len(t, found, 1)
		require.Equal(t, doctor.Fault, found[0].State)
		require.Contains(t, found[0].Remedy, "check the network of this machine")
	}
	require.Equal(t, "not checked, since cosmos.name has a fault", find(report.Findings, "cosmos.rights")[0].Text)
	require.Equal(t, 4, report.Count(doctor.Fault))
}

func TestDoctor_UsesTheProxyOfTheHub(t *testing.T) {
	d := newInspectedHub(t)
	var proxied atomic.Int32
	d.useProxy(serveHTTP(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		proxied.Add(1)
		(&httputil.ReverseProxy{Rewrite: func(p *httputil.ProxyRequest) { p.Out.Host = p.In.Host }}).ServeHTTP(w, r)
	})))
	d.cfg.Blob, d.cfg.ServiceBus = config.Default().Blob, config.Default().ServiceBus
	report := d.diagnose()
	require.Zero(t, report.Count(doctor.Fault), "%+v", report.Findings)
	require.Positive(t, proxied.Load())
	require.Contains(t, find(report.Findings, "proxy")[0].Text, "is called by the proxy http://127.0.0.1:")
	require.Contains(t, find(report.Findings, "cosmos.name")[0].Text, "the proxy looks up")
}

func TestDoctor_SaysThatAMQPUsesNoProxy(t *testing.T) {
	d := newInspectedHub(t)
	d.useProxy("http://user:password@proxy.example:3128")
	report := node.Diagnose(t.Context(), &d.cfg, node.DoctorOptions{}, d.opts)
	found := find(report.Findings, "proxy")
	require.Len(t, found, 3)
	require.Contains(t, found[2].Text, "AMQP does not use it")
	for _, f := range found {
		require.NotContains(t, f.Text, "password")
	}
}

func TestDoctor_RemovesTheDocumentThatItCouldNotDelete(t *testing.T) {
	d := newInspectedHub(t)
	d.refuseDocuments = refuseAction("items/delete")
	report := d.diagnose()
	require.Contains(t, find(report.Findings, "cosmos.rights")[1].Text, "could not be deleted")
	require.Equal(t, 1, d.countProbes())
	d.refuseDocuments = nil
	d.diagnose()
	require.Equal(t, 1, d.countProbes(), "that run may not have ended")
}

func TestDoctor_LeavesNothingThatACheckFinds(t *testing.T) {
	d := newInspectedHub(t)
	d.refuseDocuments = refuseAction("items/delete")
	d.diagnose()
	require.Equal(t, 1, d.countProbes())
	d.refuseDocuments = nil
	n, stop := start(t, d.cfg, node.Options{})
	status, answer := call(t, http.MethodPost, n.URL()+"/v1/data-available", "", event)
	require.Equal(t, http.StatusAccepted, status, answer)
	status, answer = call(t, http.MethodPost, n.URL()+"/v1/admin/check", "", `{"actor":""}`)
	require.Less(t, status, 300, answer)
	require.Contains(t, answer, `"findings":[]`)
	require.Contains(t, answer, `"recipients":1`)
	require.NoError(t, stop())
}

// countProbes returns the number of test documents that remain in the account.
func (d *inspectedHub) countProbes() (n int) {
	c, err := d.documents.NewContainer("messagehub", "catalog")
	require.NoError(d, err)
	pager := c.NewQueryItemsPager("SELECT c.id FROM c WHERE c.kind = 'probe'", azcosmos.NewPartitionKeyString("|probe"), nil)
	for pager.More() {
		page, err := pager.NextPage(d.Context())
		require.NoError(d, err)
		n += len(page.Items)
	}
	return n
}

func TestDoctor_LeavesNoFileBehind(t *testing.T) {
	cfg := settings(t.TempDir())
	left := filepath.Join(cfg.Data, ".doctor-old")
	require.NoError(t, os.WriteFile(left, nil, 0o600))
	old := time.Now().Add(-time.Hour)
	require.NoError(t, os.Chtimes(left, old, old))
	node.Diagnose(t.Context(), &cfg, node.DoctorOptions{}, node.Options{})
	entries, err := os.ReadDir(cfg.Data)
	require.NoError(t, err)
	require.Empty(t, entries)
}
