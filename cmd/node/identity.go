package node

import (
	"fmt"
	"sync"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azidentity"
)

// Identity returns the credential of this process for Azure.
func Identity() (azcore.TokenCredential, error) {
	credential, err := azidentity.NewDefaultAzureCredential(nil)
	if err != nil {
		return nil, fmt.Errorf("find an Azure identity: %w; set the AZURE_ variables, or log in with az login", err)
	}
	return credential, nil
}

// identity returns the credential when the first part needs it; it is the same for
// all.
func identity() func() (azcore.TokenCredential, error) { return sync.OnceValues(Identity) }
