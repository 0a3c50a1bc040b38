// Command protobuf writes the Go code of .proto files beside the files. It needs no installed protoc: the compiler is a library, and the plugin that writes Go is a part of the protobuf module. go.mod pins both versions.
//
//	go -C .ci/tools run ./protobuf [-check] FILE...
//
// FILE is a path from the top of the tree. With -check it writes nothing, and
// fails if a file would change.
package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/bufbuild/protocompile"
	"github.com/bufbuild/protocompile/protoutil"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/pluginpb"
)

// top is the path from the folder of the tools' module to the top of the tree.
const top = "../.."

func main() {
	check := flag.Bool("check", false, "write nothing; fail if a file is not up to date")
	flag.Parse()
	if err := generateAll(context.Background(), *check, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "protobuf:", err)
		os.Exit(1)
	}
}

func generateAll(ctx context.Context, check bool, files []string) error {
	request, err := compileFiles(ctx, files)
	if err != nil {
		return err
	}
	response, err := runPlugin(ctx, request)
	if err != nil {
		return err
	}
	for _, file := range response.GetFile() {
		name, text := filepath.Join(top, file.GetName()), []byte(file.GetContent())
		if !check {
			if err := os.WriteFile(name, text, 0o644); err != nil {
				return err
			}
			continue
		}
		if old, err := os.ReadFile(name); err != nil || !bytes.Equal(old, text) {
			return errors.Join(fmt.Errorf("%s is not what its .proto says; run make generate", file.GetName()), err)
		}
	}
	return nil
}

// compileFiles returns the request that protoc would send to a plugin. It
// includes comments, because the Go code repeats them.
func compileFiles(ctx context.Context, files []string) (*pluginpb.CodeGeneratorRequest, error) {
	compiler := protocompile.Compiler{
		Resolver:       protocompile.WithStandardImports(&protocompile.SourceResolver{ImportPaths: []string{top}}),
		SourceInfoMode: protocompile.SourceInfoStandard,
	}
	compiled, err := compiler.Compile(ctx, files...)
	if err != nil {
		return nil, err
	}
	var descriptors []*descriptorpb.FileDescriptorProto
	for _, file := range compiled {
		descriptors = append(descriptors, protoutil.ProtoFromFileDescriptor(file))
	}
	return &pluginpb.CodeGeneratorRequest{
		FileToGenerate: files,
		Parameter:      proto.String("paths=source_relative"),
		ProtoFile:      descriptors,
	}, nil
}

// runPlugin runs the plugin with a request.
func runPlugin(ctx context.Context, request *pluginpb.CodeGeneratorRequest) (*pluginpb.CodeGeneratorResponse, error) {
	input, err := proto.Marshal(request)
	if err != nil {
		return nil, err
	}
	plugin := exec.CommandContext(ctx, "go", "tool", "protoc-gen-go")
	plugin.Stdin, plugin.Stderr = bytes.NewReader(input), os.Stderr
	output, err := plugin.Output()
	if err != nil {
		return nil, fmt.Errorf("protoc-gen-go: %w", err)
	}
	response := new(pluginpb.CodeGeneratorResponse)
	if err := proto.Unmarshal(output, response); err != nil {
		return nil, fmt.Errorf("protoc-gen-go: %w", err)
	}
	if response.Error != nil {
		return nil, fmt.Errorf("protoc-gen-go: %s", response.GetError())
	}
	return response, nil
}
