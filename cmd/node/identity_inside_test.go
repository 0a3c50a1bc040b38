package node

import (
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/stretchr/testify/require"
)

// An entra behaves like Microsoft Entra ID towards a workload that presents a
// token of its cluster.
type entra struct {
	t          *testing.T
	assertions []string
}

func (e *entra) Do(req *http.Request) (*http.Response, error) {
	const authority = "https://login.microsoftonline.com/tenant/"
	answer := `{"tenant_discovery_endpoint":"` + authority + `v2.0/.well-known/openid-configuration","api-version":"1.1","metadata":[]}`
	switch {
	case strings.HasSuffix(req.URL.Path, "/openid-configuration"):
		answer = `{"token_endpoint":"` + authority + `oauth2/v2.0/token","authorization_endpoint":"` + authority + `oauth2/v2.0/authorize","issuer":"` + authority + `v2.0"}`
	case strings.HasSuffix(req.URL.Path, "/token"):
		body, err := io.ReadAll(req.Body)
		require.NoError(e.t, err)
		form, err := url.ParseQuery(string(body))
		require.NoError(e.t, err)
		require.Equal(e.t, "client", form.Get("client_id"))
		e.assertions = append(e.assertions, form.Get("client_assertion"))
		answer = `{"access_token":"granted","token_type":"Bearer","expires_in":3600}`
	}
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(strings.NewReader(answer)), Request: req}, nil
}

func TestIdentity_OfAWorkloadIsTheTokenInAFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "token")
	require.NoError(t, os.WriteFile(file, []byte("the token of the cluster"), 0o600))
	for name, value := range map[string]string{
		"AZURE_TENANT_ID": "tenant", "AZURE_CLIENT_ID": "client", "AZURE_FEDERATED_TOKEN_FILE": file,
		credentialsVariable: "WorkloadIdentityCredential",
	} {
		t.Setenv(name, value)
	}
	service := &entra{t: t}
	credential, err := identityOver(service, true)
	require.NoError(t, err)
	token, err := credential.GetToken(t.Context(), policy.TokenRequestOptions{Scopes: []string{"https://storage.azure.com/.default"}})
	require.NoError(t, err)
	require.Equal(t, "granted", token.Token)
	require.Equal(t, []string{"the token of the cluster"}, service.assertions)
}

func TestIdentity_InProductionNeedsAMachineCredential(t *testing.T) {
	for _, value := range []string{"prod", "ManagedIdentityCredential"} {
		t.Setenv(credentialsVariable, value)
		_, err := identityOver(nil, true)
		require.NoError(t, err, value)
	}
	for _, value := range []string{"", "dev", "AzureCLICredential", "prod,dev"} {
		t.Setenv(credentialsVariable, value)
		_, err := identityOver(nil, true)
		require.ErrorContains(t, err, credentialsVariable, value)
	}
}
