package node

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/cmd/node/config"
	"github.com/messagehub/messagehub/cmd/node/deployment"
	"github.com/messagehub/messagehub/cmd/node/doctor"
)

// azureSettings returns settings of a hub that uses only services on Azure, and
// authenticates with an identity.
func azureSettings(t *testing.T) *config.Config {
	cfg := config.Default()
	cfg.Listen, cfg.BusListen, cfg.BlobListen, cfg.Data = "127.0.0.1:0", "", "", t.TempDir()
	cfg.Cosmos.Endpoint, cfg.Blob.Endpoint = "https://hub.documents.azure.com:443/", "https://hub.blob.core.windows.net"
	cfg.ServiceBus.Namespace = "hub.servicebus.windows.net"
	cfg.Push.SecretKey = "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="
	return &cfg
}

// A fakeAzure is a network in which every host name leads to the same TLS
// server.
type fakeAzure struct {
	*testing.T
	server  *httptest.Server
	trusted *x509.CertPool
	refused func(ctx context.Context, address string) error // returns the error with which a connection to an address fails; nil if none fails
	token   func(scope string) (string, error)
}

// newFakeAzure starts a server whose certificate is valid for these names until
// this time.
func newFakeAzure(t *testing.T, until time.Time, names ...string) *fakeAzure {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{SerialNumber: big.NewInt(1), DNSNames: names, NotBefore: time.Now().Add(-48 * time.Hour), NotAfter: until, IsCA: true, BasicConstraintsValid: true}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	require.NoError(t, err)
	parsed, err := x509.ParseCertificate(der)
	require.NoError(t, err)
	f := &fakeAzure{T: t, trusted: x509.NewCertPool()}
	f.trusted.AddCert(parsed)
	f.server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusUnauthorized) }))
	f.server.TLS = &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}}
	f.server.Config.ErrorLog = log.New(io.Discard, "", 0) // discarded, because in some tests clients reject the certificate
	f.server.StartTLS()
	t.Cleanup(f.server.Close)
	return f
}

// allNames lists the host names in azureSettings.
var allNames = []string{"hub.documents.azure.com", "hub.blob.core.windows.net", "hub.servicebus.windows.net"}

// diagnosis returns a diagnosis of a hub that calls f.
func (f *fakeAzure) diagnosis(cfg *config.Config) *diagnosis {
	d := newDiagnosis(cfg, DoctorOptions{Online: true}, Options{
		LookUp: func(context.Context, string) ([]netip.Addr, error) {
			return []netip.Addr{netip.MustParseAddr("10.1.2.3")}, nil
		},
		Dial: func(ctx context.Context, network, address string) (net.Conn, error) {
			if f.refused != nil {
				if err := f.refused(ctx, address); err != nil {
					return nil, err
				}
			}
			return new(net.Dialer).DialContext(ctx, network, f.server.Listener.Addr().String())
		},
	})
	d.opts.network.probes.Transport.(*http.Transport).TLSClientConfig = &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: f.trusted}
	d.opts.identity = func() (azcore.TokenCredential, error) { return f, nil }
	d.variable = func(string) string { return "" }
	return d
}

// GetToken implements azcore.TokenCredential.
func (f *fakeAzure) GetToken(_ context.Context, o policy.TokenRequestOptions) (azcore.AccessToken, error) {
	token, err := f.token(o.Scopes[0])
	return azcore.AccessToken{Token: token, ExpiresOn: time.Now().Add(time.Hour)}, err
}

// tokenWith returns an unsigned token that contains these claims.
func tokenWith(t *testing.T, claims map[string]any) string {
	text, err := json.Marshal(claims)
	require.NoError(t, err)
	return "eyJhbGciOiJub25lIn0." + base64.RawURLEncoding.EncodeToString(text) + ".secret-signature"
}

// goodToken returns a token that services accept for a scope.
func (f *fakeAzure) goodToken(scope string) (string, error) {
	return tokenWith(f.T, map[string]any{
		"aud": strings.TrimSuffix(scope, "/.default"), "tid": "the-tenant", "oid": "the-object", "appid": "the-application", "idtyp": "app",
		"nbf": time.Now().Add(-time.Minute).Unix(), "exp": time.Now().Add(time.Hour).Unix(),
	}), nil
}

// runCheck runs one check of the table, and first the checks that it needs.
func runCheck(d *diagnosis, name string) []doctor.Finding {
	needed := map[string]bool{name: true}
	all := d.checkTable()
	for _, c := range slices.Backward(all) { // a check needs only earlier checks
		for _, need := range c.Needs {
			needed[need] = needed[need] || needed[c.Name]
		}
	}
	all = slices.DeleteFunc(all, func(c doctor.Check) bool { return !needed[c.Name] })
	var found []doctor.Finding
	for _, f := range doctor.Run(context.Background(), all, doctor.Options{Limit: time.Second}).Findings {
		if f.Check == name {
			found = append(found, f)
		}
	}
	return found
}

func TestDoctor_ReportsNameTLSAndTokenOfAzure(t *testing.T) {
	f := newFakeAzure(t, time.Now().Add(90*24*time.Hour), allNames...)
	f.token = f.goodToken
	d := f.diagnosis(azureSettings(t))
	require.Equal(t, "hub.documents.azure.com is 10.1.2.3 (private)", runCheck(d, "cosmos.name")[0].Text)
	require.Contains(t, runCheck(d, "cosmos.connection")[0].Text, "hub.documents.azure.com answers; TLS 1.3, certificate until ")
	require.Equal(t, doctor.OK, runCheck(d, "blob.clock")[0].State)
	for check, audience := range map[string]string{"cosmos.token": "https://hub.documents.azure.com", "blob.token": "https://storage.azure.com", "servicebus.token": "https://servicebus.azure.net/"} {
		found := runCheck(d, check)
		require.Len(t, found, 1)
		require.Equal(t, doctor.OK, found[0].State, found)
		require.Contains(t, found[0].Text, "application the-application, object the-object, tenant the-tenant, for "+audience)
		require.NotContains(t, found[0].Text, "secret-signature")
	}
}

func TestDoctor_FindsFaultsOfTLS(t *testing.T) {
	for _, tc := range []struct {
		name, text, remedy string
		state              doctor.State
		azure              *fakeAzure
	}{
		{"a certificate for another name", "has a certificate for other.example", "correct cosmos.endpoint", doctor.Fault, newFakeAzure(t, time.Now().Add(90*24*time.Hour), "other.example")},
		{"a certificate that has expired", "is not valid now", "check the clock", doctor.Fault, newFakeAzure(t, time.Now().Add(-24*time.Hour), allNames...)},
		{"a certificate that expires soon", "expires in 3 days", "its owner has to renew it", doctor.Warning, newFakeAzure(t, time.Now().Add(3*24*time.Hour+time.Hour), allNames...)},
	} {
		t.Run(tc.name, func(t *testing.T) {
			tc.azure.token = tc.azure.goodToken
			found := runCheck(tc.azure.diagnosis(azureSettings(t)), "cosmos.connection")[0]
			require.Equal(t, tc.state, found.State, found)
			require.Contains(t, found.Text, tc.text)
			require.Contains(t, found.Remedy, tc.remedy)
		})
	}
}

func TestDoctor_FindsFaultsOfTokens(t *testing.T) {
	f := newFakeAzure(t, time.Now().Add(90*24*time.Hour), allNames...)
	soon := time.Now().Add(time.Hour).Unix()
	for _, tc := range []struct {
		name         string
		token        func(string) (string, error)
		state        doctor.State
		text, remedy string
	}{
		{"no identity", func(string) (string, error) {
			return "", errors.New("DefaultAzureCredential: failed to acquire a token.\nAttempted credentials:")
		}, doctor.Fault, "no token for Cosmos DB: DefaultAzureCredential: failed to acquire a token. Attempted credentials:", "give this machine an identity"},
		{"another audience", func(string) (string, error) {
			return tokenWith(t, map[string]any{"aud": "https://storage.azure.com", "exp": soon}), nil
		}, doctor.Fault, "the token is for https://storage.azure.com, and Cosmos DB needs one for https://hub.documents.azure.com", "check cosmos.endpoint"},
		{"a clock that is behind", func(string) (string, error) {
			return tokenWith(t, map[string]any{"aud": "https://hub.documents.azure.com", "nbf": time.Now().Add(10 * time.Minute).Unix(), "exp": soon}), nil
		}, doctor.Fault, "the token is valid from ", "synchronize the clock"},
		{"a token that has expired", func(string) (string, error) {
			return tokenWith(t, map[string]any{"aud": "https://hub.documents.azure.com", "exp": 1}), nil
		}, doctor.Fault, "the token has expired at 1970-01-01", "synchronize the clock"},
		{"a person", func(string) (string, error) {
			return tokenWith(t, map[string]any{"aud": []string{"https://hub.documents.azure.com"}, "upn": "kim@example.org", "exp": soon}), nil
		}, doctor.Warning, "the token is that of a person", "an identity of its own"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			f.token = tc.token
			found := runCheck(f.diagnosis(azureSettings(t)), "cosmos.token")
			require.Len(t, found, 1)
			require.Equal(t, tc.state, found[0].State, found)
			require.Contains(t, found[0].Text, tc.text)
			require.Contains(t, found[0].Remedy, tc.remedy)
		})
	}
	f.token = func(string) (string, error) { return "opaque", nil }
	require.Contains(t, runCheck(f.diagnosis(azureSettings(t)), "cosmos.token")[0].Text, "a token that is valid until")
}

func TestDoctor_SaysThatThePortOfAMQPIsBlocked(t *testing.T) {
	f := newFakeAzure(t, time.Now().Add(90*24*time.Hour), allNames...)
	f.token = f.goodToken
	for name, err := range map[string]error{"dropped": context.DeadlineExceeded, "refused": &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}} {
		f.refused = func(_ context.Context, address string) error {
			if strings.HasSuffix(address, ":5671") {
				return err
			}
			return nil
		}
		found := runCheck(f.diagnosis(azureSettings(t)), "servicebus.connection")[0]
		require.Equal(t, doctor.Fault, found.State, name)
		require.Contains(t, found.Text, "port 443 of it is reached", name)
		require.Contains(t, found.Remedy, "allow outgoing connections to port 5671 of hub.servicebus.windows.net: the hub speaks AMQP there, and not over WebSockets", name)
	}
}

// The doctor must not wait long for a host if connections to it time out.
func TestDoctor_DoesNotWaitForHostsThatDropEverything(t *testing.T) {
	f := newFakeAzure(t, time.Now().Add(90*24*time.Hour), allNames...)
	f.token = f.goodToken
	over := make(chan struct{})
	defer close(over) // ends dials that net/http continues after their requests have ended
	f.refused = func(ctx context.Context, _ string) error {
		select {
		case <-ctx.Done():
		case <-over:
		}
		return context.DeadlineExceeded
	}
	d := f.diagnosis(azureSettings(t))
	began := time.Now()
	report := doctor.Run(t.Context(), d.checkTable(), doctor.Options{Limit: 50 * time.Millisecond, Total: 2 * time.Second})
	require.Less(t, time.Since(began), 3*time.Second)
	for _, check := range []string{"cosmos.connection", "blob.connection"} {
		for _, found := range report.Findings {
			if found.Check == check {
				require.Contains(t, found.Text, "does not answer in time")
				require.Contains(t, found.Remedy, "allow outgoing connections to port 443")
			}
		}
	}
}

func TestDoctor_FindsFaultsOfTheMachine(t *testing.T) {
	variables := func(of map[string]string) func(*diagnosis) {
		return func(d *diagnosis) { d.variable = func(name string) string { return of[name] } }
	}
	for _, tc := range []struct {
		name         string
		plant        func(*diagnosis)
		check        string
		state        doctor.State
		text, remedy string
	}{
		{"hardly any files", func(d *diagnosis) { d.fileLimit = func() int { return 200 } }, "files", doctor.Fault, "this process may open 200 files", "LimitNOFILE"},
		{"few files", func(d *diagnosis) { d.fileLimit = func() int { return 1024 } }, "files", doctor.Warning, "enough for 512 connections and 384 waiting Peeks", "LimitNOFILE"},
		{"fewer files than connections", func(d *diagnosis) { d.fileLimit, d.cfg.Limits.Connections = func() int { return 1024 }, 2000 }, "files", doctor.Fault, "enough for 512 connections", "lower limits.connections"},
		{"a slow disk", func(d *diagnosis) {
			d.writeSynced = func(string) (time.Duration, error) { return 80 * time.Millisecond, nil }
		}, "sync", doctor.Warning, "a small write takes 80ms", "use a local disk"},
		{"a disk that takes no write", func(d *diagnosis) { d.writeSynced = func(string) (time.Duration, error) { return 0, syscall.EROFS } }, "sync", doctor.Fault, "data folder", "make it writable"},
		{"a disk that is nearly full", func(d *diagnosis) {
			d.measureDisk = func(string) (diskUsage, error) { return diskUsage{isKnown: true, free: 100 << 20}, nil }
		}, "space", doctor.Warning, "100 MB free", "free space on it"},
		{"a disk without inodes", func(d *diagnosis) {
			d.measureDisk = func(string) (diskUsage, error) { return diskUsage{isKnown: true, free: 1 << 40, noMoreFile: true}, nil }
		}, "space", doctor.Fault, "no inodes left", "remove files"},
		{"an identity of a developer in production", func(d *diagnosis) { d.cfg.Production = true }, "identity", doctor.Fault, "production uses no identity of a developer", "set it to prod"},
		{"half an identity", variables(map[string]string{"AZURE_CLIENT_SECRET": "x", "AZURE_CLIENT_ID": "a"}), "identity", doctor.Fault, "AZURE_CLIENT_ID or AZURE_TENANT_ID is not", "set AZURE_CLIENT_ID and AZURE_TENANT_ID"},
		{"an identity without a proof", variables(map[string]string{"AZURE_CLIENT_ID": "a", "AZURE_TENANT_ID": "t"}), "identity", doctor.Warning, "nothing proves the identity", "AZURE_FEDERATED_TOKEN_FILE"},
		{"a token of the cluster that is missing", variables(map[string]string{"AZURE_CLIENT_ID": "a", "AZURE_TENANT_ID": "t", "AZURE_FEDERATED_TOKEN_FILE": "/absent"}), "identity", doctor.Fault, "the token of the cluster cannot be read", "workload identity"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			cfg := azureSettings(t)
			if tc.check != "identity" {
				cfg.Blob.Endpoint = "" // the hub then uses its data folder
			}
			d := newDiagnosis(cfg, DoctorOptions{}, Options{})
			d.variable = func(string) string { return "" }
			tc.plant(d)
			found := runCheck(d, tc.check)
			require.Len(t, found, 1)
			require.Equal(t, tc.state, found[0].State, found)
			require.Contains(t, found[0].Text, tc.text)
			require.Contains(t, found[0].Remedy, tc.remedy)
		})
	}
}

func TestDoctor_TestsEachRightOfTheRole(t *testing.T) {
	cfg := config.Default()
	role := deployment.NewTable(&cfg).DataRole
	require.Len(t, testedRights(role), len(role.Actions)-1, "all but readMetadata, which the check of the containers uses")
}

func TestUnitMeter_CountsTheUnitsOfAnswers(t *testing.T) {
	meter := &unitMeter{next: roundTrip(func(r *http.Request) (*http.Response, error) {
		if r.URL.Path == "/fails" {
			return nil, errors.New("no route")
		}
		return &http.Response{Header: http.Header{"X-Ms-Request-Charge": {"2.5"}}, Body: io.NopCloser(strings.NewReader(""))}, nil
	})}
	for _, path := range []string{"/a", "/b", "/fails"} {
		resp, err := meter.RoundTrip(httptest.NewRequest(http.MethodGet, path, http.NoBody))
		if err == nil {
			require.NoError(t, resp.Body.Close())
		}
	}
	require.InDelta(t, 5.0, meter.units(), 1e-9)
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }
