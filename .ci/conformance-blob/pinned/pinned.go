// Package pinned imports the modules whose tests are run, so that go.mod pins
// their versions.
package pinned

import (
	_ "github.com/Azure/azure-sdk-for-go/sdk/storage/azblob"
	_ "gocloud.dev/blob/azureblob"
)
