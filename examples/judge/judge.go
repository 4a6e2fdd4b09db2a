// Judges a change of a CRD: go run judge.go PUSHBACK OLD.json NEW.json
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
)

func main() {
	judge := exec.Command(os.Args[1], "judge")
	input, _ := judge.StdinPipe()
	output, _ := judge.StdoutPipe()
	check(judge.Start())
	request := map[string]any{"apiVersion": "pushback.dev/v1alpha1", "kind": "JudgeRequest"}
	request["old"], request["new"] = read(os.Args[2]), read(os.Args[3])
	check(json.NewEncoder(input).Encode(request))
	var response struct {
		Verdict string
		Changes []struct{ Path, Check string }
	}
	check(json.NewDecoder(bufio.NewReader(output)).Decode(&response))
	fmt.Println(response.Verdict)
	for _, change := range response.Changes {
		fmt.Println(change.Path, change.Check)
	}
	input.Close()
	check(judge.Wait())
}

func read(path string) json.RawMessage {
	content, err := os.ReadFile(path)
	check(err)
	return content
}

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
