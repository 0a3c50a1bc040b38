package node

import (
	"fmt"
	"os"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/azidentity"
)

// Identity returns this process's Azure credential.
func Identity() (azcore.TokenCredential, error) { return identityOver(nil, false) }

// credentialsVariable is the environment variable that limits which credentials
// azidentity tries.
const credentialsVariable = "AZURE_TOKEN_CREDENTIALS" //nolint:gosec // a name

// isDeployed reports whether a value of credentialsVariable selects only
// credentials of machines in production, and no credentials of developers, such
// as az login.
func isDeployed(value string) bool {
	switch value {
	case "prod", "EnvironmentCredential", "WorkloadIdentityCredential", "ManagedIdentityCredential":
		return true
	}
	return false
}

// identityOver returns this process's Azure credential, which requests tokens
// over transport, or over the default transport of the Azure SDK if transport
// is nil. If isProduction is true, it fails unless credentialsVariable excludes
// developers' credentials.
func identityOver(transport policy.Transporter, isProduction bool) (azcore.TokenCredential, error) {
	if value := os.Getenv(credentialsVariable); isProduction && !isDeployed(value) {
		return nil, fmt.Errorf("find an Azure identity: %s is %q; with production, set it to prod, EnvironmentCredential, WorkloadIdentityCredential or ManagedIdentityCredential, so that no identity of a developer is used", credentialsVariable, value)
	}
	credential, err := azidentity.NewDefaultAzureCredential(&azidentity.DefaultAzureCredentialOptions{
		ClientOptions: policy.ClientOptions{Transport: transport},
	})
	if err != nil {
		return nil, fmt.Errorf("find an Azure identity: %w; set the AZURE_ variables, or log in with az login", err)
	}
	return credential, nil
}
