package node_test

import (
	"context"
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"net"
	"net/http"
	"net/http/httputil"
	"net/netip"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/stretchr/testify/require"

	bus "github.com/messagehub/messagehub/api/servicebus/embedded"
	"github.com/messagehub/messagehub/cmd/node"
	"github.com/messagehub/messagehub/cmd/node/config"
	cosmos "github.com/messagehub/messagehub/cosmos/embedded"
	blobs "github.com/messagehub/messagehub/repository/content/embedded"
)

// A receivers contains servers in this process. A node calls them through the
// test's Dial and LookUp options.
type receivers struct {
	byAddress map[string]func(context.Context) (net.Conn, error)

	mu     sync.Mutex
	dialed map[string]chan struct{} // channels by address; each is closed by the first connection to the address
}

func (r *receivers) dial(ctx context.Context, _, address string) (net.Conn, error) {
	connect := r.byAddress[address]
	if connect == nil {
		return nil, errors.New("no receiver at " + address)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	select {
	case <-r.dialed[address]:
	default:
		close(r.dialed[address])
	}
	return connect(ctx)
}

func (r *receivers) add(address string, connect func(context.Context) (net.Conn, error)) {
	r.byAddress[address], r.dialed[address] = connect, make(chan struct{})
}

// lookUp knows only localhost. It returns an address that is reserved for
// documentation.
func (r *receivers) lookUp(_ context.Context, host string) ([]netip.Addr, error) {
	if host != "localhost" {
		return nil, errors.New("no host " + host)
	}
	return []netip.Addr{netip.MustParseAddr("192.0.2.1")}, nil
}

// A pipeListener accepts connections made with net.Pipe.
type pipeListener struct {
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
}

func (l *pipeListener) Accept() (net.Conn, error) {
	select {
	case conn := <-l.conns:
		return conn, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

func (l *pipeListener) Close() error {
	l.once.Do(func() { close(l.closed) })
	return nil
}

func (l *pipeListener) Addr() net.Addr { return &net.TCPAddr{} }

func (l *pipeListener) dial(ctx context.Context) (net.Conn, error) {
	near, far := net.Pipe()
	select {
	case l.conns <- far:
		return near, nil
	case <-l.closed:
		return nil, net.ErrClosed
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

type roundTripper struct{ policy.Transporter }

func (t roundTripper) RoundTrip(req *http.Request) (*http.Response, error) { return t.Do(req) }

// serveOver serves an embedded engine over HTTP on in-memory connections.
func serveOver(t *testing.T, engine policy.Transporter) *pipeListener {
	l := &pipeListener{conns: make(chan net.Conn), closed: make(chan struct{})}
	server := &http.Server{Handler: &httputil.ReverseProxy{
		Transport: roundTripper{engine},
		Rewrite:   func(r *httputil.ProxyRequest) { r.Out.URL.Scheme, r.Out.URL.Host = "http", r.In.Host },
	}}
	var serving sync.WaitGroup
	serving.Go(func() { _ = server.Serve(l) })
	t.Cleanup(func() {
		require.NoError(t, server.Close())
		serving.Wait()
	})
	return l
}

// A node with remote accounts and a remote namespace must connect to all of
// them through Options.Dial and Options.LookUp. Any other connection would
// fail: no process listens on these ports, and the address is not routed.
func TestEveryCallOfANodeUsesItsNetwork(t *testing.T) {
	engine, err := cosmos.Open(cosmos.Options{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, engine.Close()) })
	account, err := blobs.Open(blobs.Options{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, account.Close()) })
	namespace, err := bus.Open(bus.Options{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, namespace.Close()) })
	r := &receivers{byAddress: make(map[string]func(context.Context) (net.Conn, error)), dialed: make(map[string]chan struct{})}
	r.add("192.0.2.1:1", serveOver(t, engine.Transport()).dial)
	r.add("192.0.2.1:2", serveOver(t, account.Transport()).dial)
	r.add("192.0.2.1:3", namespace.Dial)

	cfg := settings("")
	cfg.InMemory = false
	cfg.Cosmos.Endpoint, cfg.Cosmos.Key = "http://localhost:1", config.Secret(engine.Key())
	cfg.Blob.Endpoint, cfg.Blob.Key = "http://localhost:2/"+account.Name(), config.Secret(account.Key())
	cfg.ServiceBus.Connection = "Endpoint=sb://localhost:3;SharedAccessKeyName=" + bus.WellKnownKeyName + ";SharedAccessKey=" + bus.WellKnownKey + ";UseDevelopmentEmulator=true"
	n, stop := start(t, cfg, node.Options{Dial: r.dial, LookUp: r.lookUp})
	status, body := call(t, http.MethodPost, n.URL()+"/v1/data-available", "", event)
	require.Equal(t, http.StatusAccepted, status, body)
	status, body = call(t, http.MethodGet, n.URL()+"/v1/peek", "a", "")
	require.Equal(t, http.StatusOK, status)
	require.Contains(t, body, `"payload":{"n":1}`)
	for _, dialed := range r.dialed {
		<-dialed
	}
	require.NoError(t, stop())
}

// outgoingFunctions lists, by package, the functions and types with which code
// can resolve names or connect to hosts.
var outgoingFunctions = map[string][]string{
	"net":                        {"Dial", "DialIP", "DialTCP", "DialTimeout", "DialUDP", "DialUnix", "Dialer", "Resolver", "DefaultResolver", "Lookup"},
	"net/http":                   {"Client", "DefaultClient", "DefaultTransport", "Get", "Head", "Post", "PostForm", "Transport"},
	"crypto/tls":                 {"Client", "Dial", "DialWithDialer", "Dialer"},
	"net/smtp":                   {"Dial", "NewClient", "SendMail"},
	"net/rpc":                    {"Dial"},
	"log/syslog":                 {"Dial", "New"},
	"golang.org/x/net/proxy":     {"Dial", "FromEnvironment"},
	"github.com/coder/websocket": {"Dial"},
	"github.com/Azure/azure-sdk-for-go/sdk/azidentity": {"New"},
}

// byPrefix lists the entries of outgoingFunctions that are prefixes: each
// matches every name that begins with it.
var byPrefix = []string{"Lookup", "New", "Dial"}

// allowedFiles lists the files that may use outgoingFunctions, with a reason for
// each.
var allowedFiles = map[string]string{
	"api/broker/brokerclient/client.go": "its default client is for programs that are no node",
	"api/identity/code_flow.go":         "it takes the client of the node",
	"api/webhook/transport.go":          "it guards each call of a receiver, and takes the network of the node",
	"cmd/node/network.go":               "it is the network",
	"cmd/node/otlp/client.go":           "spans are sent by the process, beside its node; its transport can be replaced",
	"cmd/node/otlp/traces.go":           "it makes that transport",
	"cmd/node/identity.go":              "it gives the credential the network's transport",
	"cosmos/client/connect.go":          "its default transport is for programs that are no node",
}

// TestNoCallBypassesTheNetwork reads the source of all packages of a node. It
// skips the embedded engines, which make no calls, and the client packages for
// actors, domains, producers and consumers, which a node does not use.
func TestNoCallBypassesTheNetwork(t *testing.T) {
	root := filepath.Join("..", "..")
	files := 0
	for _, top := range []string{"api", "cmd/node", "cosmos", "domain", "repository"} {
		err := filepath.WalkDir(filepath.Join(root, top), func(path string, entry fs.DirEntry, err error) error {
			switch {
			case err != nil:
				return err
			case entry.IsDir() && slices.Contains([]string{"embedded", "faulty", "testdata", "brokerclient", "domainclient", "hubclient", "repositorytest"}, entry.Name()):
				return fs.SkipDir
			case entry.IsDir() || filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go"):
				return nil
			}
			name, err := filepath.Rel(root, path)
			if err != nil || allowedFiles[filepath.ToSlash(name)] != "" {
				return err
			}
			files++
			file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
			if err != nil {
				return err
			}
			for _, call := range outgoingCalls(file) {
				t.Errorf("%s uses %s: call others by the network of the node (cmd/node/network.go)", name, call)
			}
			return nil
		})
		require.NoError(t, err)
	}
	require.Greater(t, files, 100, "the walk is broken")
}

// outgoingCalls returns the names from outgoingFunctions that a file uses.
func outgoingCalls(file *ast.File) (found []string) {
	imported := make(map[string]string) // import paths by package name in this file
	for _, spec := range file.Imports {
		path, err := strconv.Unquote(spec.Path.Value)
		if err != nil || outgoingFunctions[path] == nil {
			continue
		}
		name := path[strings.LastIndex(path, "/")+1:]
		if spec.Name != nil {
			name = spec.Name.Name
		}
		imported[name] = path
	}
	ast.Inspect(file, func(n ast.Node) bool {
		selector, ok := n.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		pkg, ok := selector.X.(*ast.Ident)
		if !ok || imported[pkg.Name] == "" {
			return true
		}
		for _, name := range outgoingFunctions[imported[pkg.Name]] {
			if selector.Sel.Name == name || slices.Contains(byPrefix, name) && strings.HasPrefix(selector.Sel.Name, name) {
				found = append(found, imported[pkg.Name]+"."+selector.Sel.Name)
			}
		}
		return true
	})
	return found
}

func TestOutgoingCallsAreFound(t *testing.T) {
	const text = `package p
import ("net"; web "net/http"; "github.com/Azure/azure-sdk-for-go/sdk/azidentity")
func f(r *web.Request) {
	_, _ = net.LookupHost("a")
	_, _ = new(net.ListenConfig), net.ParseIP("b")
	_ = &web.Client{Transport: web.DefaultTransport}
	_, _ = azidentity.NewDefaultAzureCredential(nil)
}`
	file, err := parser.ParseFile(token.NewFileSet(), "p.go", text, 0)
	require.NoError(t, err)
	require.Equal(t, []string{
		"net.LookupHost", "net/http.Client", "net/http.DefaultTransport",
		"github.com/Azure/azure-sdk-for-go/sdk/azidentity.NewDefaultAzureCredential",
	}, outgoingCalls(file))
}
