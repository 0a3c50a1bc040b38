package node

import (
	"fmt"
	"os"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/azidentity"
)

// Identity returns the credential of this process for Azure.
func Identity() (azcore.TokenCredential, error) { return identityOver(nil, false) }

// credentialsVariable is the variable that restricts azidentity to some
// credentials.
const credentialsVariable = "AZURE_TOKEN_CREDENTIALS" //nolint:gosec // a name

// isDeployed reports whether a value of credentialsVariable stands for
// credentials of a machine in production. Credentials of developers, such as az
// login, do not count.
func isDeployed(value string) bool {
	switch value {
	case "prod", "EnvironmentCredential", "WorkloadIdentityCredential", "ManagedIdentityCredential":
		return true
	}
	return false
}

// identityOver returns the credential of this process, which requests tokens
// over transport; nil stands for that of the Azure SDK. In production it
// excludes credentials of developers.
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
