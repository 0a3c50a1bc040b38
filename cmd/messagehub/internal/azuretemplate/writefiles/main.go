// Command writefiles writes the generated files of deploy/azure into the folder
// that its argument names. It deletes no file. `make deploy-files` runs it.
package main

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/messagehub/messagehub/cmd/messagehub/internal/azuretemplate"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: writefiles FOLDER")
		os.Exit(2)
	}
	for name, text := range azuretemplate.Files() {
		if err := os.WriteFile(filepath.Join(os.Args[1], name), text, 0o644); err != nil { //nolint:gosec // everyone may read them
			fmt.Fprintln(os.Stderr, "writefiles:", err)
			os.Exit(1)
		}
	}
}
