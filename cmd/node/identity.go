package node

import (
	"fmt"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/azidentity"
)

// Identity returns the credential of this process for Azure.
func Identity() (azcore.TokenCredential, error) { return identityOver(nil) }

// identityOver returns the credential of this process, which asks for tokens by transport;
// nil stands for that of the Azure SDK.
func identityOver(transport policy.Transporter) (azcore.TokenCredential, error) {
	credential, err := azidentity.NewDefaultAzureCredential(&azidentity.DefaultAzureCredentialOptions{
		ClientOptions: policy.ClientOptions{Transport: transport},
	})
	if err != nil {
		return nil, fmt.Errorf("find an Azure identity: %w; set the AZURE_ variables, or log in with az login", err)
	}
	return credential, nil
}
