package node

import (
	"fmt"
	"sync"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azidentity"
)

// identity returns the credential of this process for Azure, which is looked for
// when the first part needs it, and is the same for all.
func identity() func() (azcore.TokenCredential, error) {
	return sync.OnceValues(func() (azcore.TokenCredential, error) {
		credential, err := azidentity.NewDefaultAzureCredential(nil)
		if err != nil {
			return nil, fmt.Errorf("find an Azure identity: %w; set the AZURE_ variables, or log in with az login", err)
		}
		return credential, nil
	})
}
