// Command notices lists the modules that the command messagehub links: each with its version, the names of its licences, and their texts. Anyone who redistributes the command must include these texts.
//
//	go run ./deploy/notices -o bin/NOTICES
//
// It needs the go command and the module cache, and nothing else. The list covers all systems for which releases are built. A module without a licence is an error, and so is a licence whose name the command does not know: a person must check them. After an error, no file is written.
package main
