package main

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/cosmos/embedded"
)

// A managedIdentity is an HTTP endpoint that issues tokens, like the one of App
// Service. It checks only the secret in the header X-IDENTITY-HEADER. The
// Cosmos DB emulator accepts the tokens.
type managedIdentity struct {
	*httptest.Server
	secret string // expected value of the header X-IDENTITY-HEADER

	mu        sync.Mutex
	resources map[string]int // number of token requests by resource
}

func newManagedIdentity(t *testing.T) *managedIdentity {
	t.Helper()
	m := &managedIdentity{secret: "canary-of-the-identity", resources: make(map[string]int)}
	m.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("X-Identity-Header") != m.secret {
			http.Error(w, "the header is wrong", http.StatusUnauthorized)
			return
		}
		resource := r.URL.Query().Get("resource")
		m.mu.Lock()
		m.resources[resource]++
		m.mu.Unlock()
		_ = json.NewEncoder(w).Encode(map[string]string{
			"access_token": emulatorToken(resource), "expires_on": strconv.FormatInt(time.Now().Add(time.Hour).Unix(), 10),
			"resource": resource, "token_type": "Bearer",
		})
	}))
	t.Cleanup(m.Close)
	return m
}

// emulatorToken returns a JSON web token that contains an emulator's key
// instead of a signature.
func emulatorToken(resource string) string {
	encode := base64.RawURLEncoding.EncodeToString
	claims, _ := json.Marshal(map[string]any{"aud": resource, "exp": time.Now().Add(time.Hour).Unix()}) // texts and numbers can always be encoded
	return encode([]byte(`{"alg":"none"}`)) + "." + encode(claims) + "." + encode([]byte(embedded.WellKnownKey))
}

// environ returns the environment of a process whose only identity is m.
func (m *managedIdentity) environ() []string {
	return []string{"IDENTITY_ENDPOINT=" + m.URL, "IDENTITY_HEADER=" + m.secret, "AZURE_TOKEN_CREDENTIALS=ManagedIdentityCredential"}
}

func TestHub_WithoutAnyKeyUsesItsIdentity(t *testing.T) {
	identity := newManagedIdentity(t)
	certificates := t.TempDir()
	emulate := func(name string, args ...string) (address string) {
		address, _ = spawnEmulator(t, nil, append([]string{name, "--tls", "--cert", filepath.Join(certificates, name+".crt")}, args...)...)
		return address
	}
	environ := append(identity.environ(), "MESSAGEHUB_PRODUCTION=true",
		"MESSAGEHUB_COSMOS_ENDPOINT=https://"+emulate("cosmos")+"/",
		"MESSAGEHUB_SERVICEBUS_NAMESPACE="+emulate("servicebus", "--trust-tokens"),
		"MESSAGEHUB_BLOB_ENDPOINT=https://"+emulate("blob", "--trust-tokens")+"/devstoreaccount1",
		tokenVariable+"="+operatorToken, "SSL_CERT_DIR="+certificates, "SSL_CERT_FILE=/dev/null")

	provision := exec.CommandContext(t.Context(), program(t), "provision")
	provision.Env = append(cleanEnviron(), environ...)
	out, err := provision.CombinedOutput()
	require.NoError(t, err, string(out))
	h := spawnHubIn(t, environ, "--data", dataFolder(t))
	require.NoError(t, h.waitReady())
	event := `{"id":"7a1c1b6e-0d39-4a55-8f0e-0d6f5f5f9a01","recipient":"` + actorA + `","origin":"Charges","contentType":"c","documentType":"d","supportsBundling":true,"weight":1,"payload":{"a":1}}`
	got := messagehub(t, event, "send", "--url", h.url(t), "-")
	require.Zero(t, got.status, got.err)
	got = messagehub(t, "", "peek", "--url", h.url(t), "--actor", actorA)
	require.Zero(t, got.status, got.err)
	require.Contains(t, got.out, `"payload":{"a":1}`)
	require.NotContains(t, h.stderrText()+string(out), identity.secret)
	identity.mu.Lock()
	defer identity.mu.Unlock()
	for _, service := range []string{"127.0.0.1", "servicebus", "storage"} {
		granted := 0
		for resource, n := range identity.resources {
			if strings.Contains(resource, service) {
				granted += n
			}
		}
		require.Positive(t, granted, "%s: %v", service, identity.resources)
	}
}

func TestHub_InProductionUsesNoIdentityOfADeveloper(t *testing.T) {
	for _, pinned := range []string{"", "dev", "AzureCLICredential"} {
		cmd := exec.CommandContext(t.Context(), program(t), "serve", "--production", "--listen", "127.0.0.1:0", "--data", dataFolder(t), "--cosmos-endpoint", "https://127.0.0.1:1/")
		cmd.Env = append(cleanEnviron(), "AZURE_TOKEN_CREDENTIALS="+pinned)
		out, err := cmd.CombinedOutput()
		require.Error(t, err)
		require.Contains(t, string(out), "AZURE_TOKEN_CREDENTIALS is "+strconv.Quote(pinned)+"; with production, set it to prod")
	}
}

func TestBlobEmulator_AcceptsTokensWithTrustTokens(t *testing.T) {
	for _, trusts := range []bool{true, false} {
		file := filepath.Join(t.TempDir(), "blob.crt")
		args := []string{"blob", "--tls", "--cert", file, "--container", "box"}
		want := http.StatusForbidden
		if trusts {
			args, want = append(args, "--trust-tokens"), http.StatusCreated
		}
		address, greeting := spawnEmulator(t, nil, args...)
		require.Contains(t, greeting, "BlobEndpoint=https://"+address+"/devstoreaccount1;")
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		roots := x509.NewCertPool()
		require.True(t, roots.AppendCertsFromPEM(text))
		transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}}
		defer transport.CloseIdleConnections()
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPut, "https://"+address+"/devstoreaccount1/box/blob", strings.NewReader("text"))
		require.NoError(t, err)
		req.Header.Set("Authorization", "Bearer "+emulatorToken("storage"))
		req.Header.Set("X-Ms-Version", "2021-12-02")
		req.Header.Set("X-Ms-Blob-Type", "BlockBlob")
		resp, err := transport.RoundTrip(req)
		require.NoError(t, err)
		require.NoError(t, resp.Body.Close())
		require.Equal(t, want, resp.StatusCode)
	}
	got := messagehub(t, "", "emulator", "blob", "--in-memory", "--listen", "0.0.0.0:0", "--trust-tokens", "--key", "c2VjcmV0")
	require.Equal(t, exitUsage, got.status)
	require.Contains(t, got.err, "--trust-tokens gives every client all rights")
}
