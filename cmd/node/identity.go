package node

import (
	"fmt"
	"os"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/azidentity"
)

// Identity returns the Azure credential of this process.
func Identity() (azcore.TokenCredential, error) { return identityOver(nil, false) }

// credentialsVariable is the environment variable that limits the credentials
// which azidentity tries.
const credentialsVariable = "AZURE_TOKEN_CREDENTIALS" //nolint:gosec // a name

// isDeployed reports whether a value of credentialsVariable selects credentials
// for machines in production. Credentials of developers, such as az login, are
// not for production.
func isDeployed(value string) bool {
	switch value {
	case "prod", "EnvironmentCredential", "WorkloadIdentityCredential", "ManagedIdentityCredential":
		return true
	}
	return false
}

// identityOver returns the Azure credential of this process. It requests tokens
// over transport; if transport is nil, it uses the default transport of the
// Azure SDK. If isProduction is true, it fails unless credentialsVariable
// excludes the credentials of developers.
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
