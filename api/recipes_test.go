package api_test

import (
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/api/identity/identitytest"
)

// tokenEndpoint starts a server that returns a token of issuer to a client with the given
// credentials.
func tokenEndpoint(t *testing.T, issuer *identitytest.Issuer, id, secret string) (url string) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		client, password, isBasic := r.BasicAuth() // golang.org/x/oauth2 sends the credentials as basic authentication
		if !isBasic {
			client, password = r.FormValue("client_id"), r.FormValue("client_secret")
		}
		if r.FormValue("grant_type") != "client_credentials" || r.FormValue("scope") == "" || client != id || password != secret {
			http.Error(w, `{"error":"invalid_client"}`, http.StatusUnauthorized)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(`{"token_type":"Bearer","expires_in":3599,"access_token":"` + issuer.Actor(actor) + `"}`))
	}))
	t.Cleanup(server.Close)
	return server.URL
}

// Each recipe in IDENTITY.md fetches a bundle. A recipe whose programs are not installed is
// skipped.
func TestRecipes_FetchABundle(t *testing.T) {
	text, err := os.ReadFile("IDENTITY.md")
	require.NoError(t, err)
	f := serveTokens(t)
	f.post(202, newEvent(1))
	const id, secret = "client-1", "a+secret&more"
	folder := t.TempDir()
	secretFile := filepath.Join(folder, "secret")
	require.NoError(t, os.WriteFile(secretFile, []byte(secret), 0o600))
	environ := append(os.Environ(), "TOKEN_URL="+tokenEndpoint(t, f.tokens.issuer, id, secret), "CLIENT_ID="+id, "CLIENT_SECRET="+secret,
		"CLIENT_SECRET_FILE="+secretFile, "SCOPE="+identitytest.Audience+"/.default", "HUB="+f.url)
	for language, command := range map[string][]string{
		"sh": {"sh", "-e"}, "python": {"python3", "-"}, "js": {"node", "--input-type=module", "-"}, "go": {"go", "run", filepath.Join(folder, "main.go")},
	} {
		t.Run(language, func(t *testing.T) {
			block := regexp.MustCompile("(?s)```" + language + "\n(.*?)```").FindSubmatch(text)
			require.NotNil(t, block)
			needed := command[0]
			if language == "sh" {
				needed = "curl"
			}
			if _, err := exec.LookPath(needed); err != nil {
				t.Logf("%s is not on this machine, so its recipe is not run", needed)
				return
			}
			cmd := exec.CommandContext(t.Context(), command[0], command[1:]...)
			cmd.Env, cmd.Stdin = environ, strings.NewReader(string(block[1]))
			if language == "go" {
				require.NoError(t, os.WriteFile(filepath.Join(folder, "main.go"), block[1], 0o600))
			}
			out, err := cmd.CombinedOutput()
			require.NoError(t, err, "%s", out)
			require.Contains(t, string(out), newEvent(1)["id"])
		})
	}
}
