// Command oracle answers what the API server's own code makes of objects, formats and definitions, without a server:
// one JSON question a line on standard input, one answer a line on standard output.
//
//	{"schema": {...}, "object": {...}}                 a create request
//	{"schema": {...}, "object": {...}, "old": {...}}   an update of what etcd holds
//	{"schema": {...}, "object": {...}, "read": true}   a read from etcd
//	{"format": "date", "text": "2024-02-29"}           whether the text has the format
//	{"definition": {...}}                              whether the definition would be created
//	{"schema": {...}, "rule": "self.a > 1"}            what a rule of the schema's root costs at most, once
//
// The group is example.com, the version v1, the kind Test. It is built by hand and by the test that compares with it.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	crdvalidation "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/validation"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel/model"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/listtype"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/objectmeta"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	metav1validation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/validation/field"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"k8s.io/apiserver/pkg/cel/common"
	"k8s.io/apiserver/pkg/cel/environment"
	"k8s.io/kube-openapi/pkg/validation/strfmt"
)

type question struct {
	Schema     json.RawMessage `json:"schema"`
	Object     json.RawMessage `json:"object"`
	Old        json.RawMessage `json:"old"`
	Read       bool            `json:"read"`
	Format     *string         `json:"format"`
	Text       string          `json:"text"`
	Definition json.RawMessage `json:"definition"`
	Rule       *string         `json:"rule"`
}

type problem struct {
	Path   string `json:"path"`
	Type   string `json:"type"`
	Detail string `json:"detail"`
}

type answer struct {
	Object  interface{} `json:"object,omitempty"`
	Errors  []problem   `json:"errors,omitempty"`
	Known   *bool       `json:"known,omitempty"`
	Valid   *bool       `json:"valid,omitempty"`
	Cost    *uint64     `json:"cost,omitempty"`
	Failure string      `json:"failure,omitempty"`
}

func main() {
	input := bufio.NewScanner(os.Stdin)
	input.Buffer(make([]byte, 1<<20), 1<<28)
	output := bufio.NewWriter(os.Stdout)
	defer output.Flush()
	encoder := json.NewEncoder(output)
	schemas := map[string]*compiled{}
	for input.Scan() {
		encoder.Encode(reply(input.Bytes(), schemas))
		output.Flush()
	}
}

func reply(line []byte, schemas map[string]*compiled) (result answer) {
	defer func() {
		if reason := recover(); reason != nil {
			result = answer{Failure: fmt.Sprint("panic: ", reason)}
		}
	}()
	var asked question
	if err := json.Unmarshal(line, &asked); err != nil {
		return answer{Failure: err.Error()}
	}
	if asked.Format != nil {
		name := strings.ReplaceAll(*asked.Format, "-", "")
		known := strfmt.Default.ContainsName(name)
		valid := known && strfmt.Default.Validates(name, asked.Text)
		return answer{Known: &known, Valid: &valid}
	}
	if len(asked.Definition) > 0 {
		return define(asked.Definition)
	}
	schema, found := schemas[string(asked.Schema)]
	if !found {
		var err error
		if schema, err = compile(asked.Schema); err != nil {
			return answer{Failure: err.Error()}
		}
		schemas[string(asked.Schema)] = schema
	}
	if asked.Rule != nil {
		return price(schema.structural, *asked.Rule)
	}
	object, err := decode(asked.Object)
	if err != nil {
		return answer{Failure: err.Error()}
	}
	if err := schema.shape(object, asked.Read); err != nil {
		return answer{Errors: []problem{{Type: "Undecodable", Detail: err.Error()}}}
	}
	if asked.Read {
		return answer{Object: object}
	}
	var old map[string]interface{}
	if len(asked.Old) > 0 {
		if old, err = decode(asked.Old); err != nil {
			return answer{Failure: err.Error()}
		}
		if err := schema.shape(old, true); err != nil {
			return answer{Failure: err.Error()}
		}
	}
	return answer{Object: object, Errors: list(schema.validate(object, old))}
}

func list(errs field.ErrorList) []problem {
	var problems []problem
	for _, err := range errs {
		problems = append(problems, problem{Path: err.Field, Type: string(err.Type), Detail: err.Detail})
	}
	return problems
}

func decode(text []byte) (map[string]interface{}, error) {
	object := map[string]interface{}{}
	return object, utiljson.Unmarshal(text, &object)
}

type compiled struct {
	structural *structuralschema.Structural
	validator  validation.SchemaValidator
	rules      *cel.Validator
}

func compile(text []byte) (*compiled, error) {
	var external apiextensionsv1.JSONSchemaProps
	if err := utiljson.Unmarshal(text, &external); err != nil {
		return nil, err
	}
	var internal apiextensions.JSONSchemaProps
	if err := apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(&external, &internal, nil); err != nil {
		return nil, err
	}
	structural, err := structuralschema.NewStructural(&internal)
	if err != nil {
		return nil, err
	}
	structural = structural.DeepCopy()
	if err := defaulting.PruneDefaults(structural); err != nil {
		return nil, err
	}
	validator, _, err := validation.NewSchemaValidator(&internal)
	if err != nil {
		return nil, err
	}
	return &compiled{structural, validator, cel.NewValidator(structural, true, celconfig.PerCallLimit)}, nil
}

// shape is what decoding a request, or an object from etcd, does before anything is validated.
func (s *compiled) shape(object map[string]interface{}, fromEtcd bool) error {
	meta, found, err := objectmeta.GetObjectMeta(object, fromEtcd)
	if err != nil {
		return err
	}
	pruning.Prune(object, s.structural, true)
	defaulting.PruneNonNullableNullsWithoutDefaults(object, s.structural)
	if err := objectmeta.Coerce(nil, object, s.structural, false, fromEtcd); err != nil {
		return err
	}
	if found {
		if err := objectmeta.SetObjectMeta(object, meta); err != nil {
			return err
		}
	}
	defaulting.Default(object, s.structural)
	return nil
}

func (s *compiled) validate(object, old map[string]interface{}) field.ErrorList {
	var errs field.ErrorList
	if object["apiVersion"] != "example.com/v1" || object["kind"] != "Test" {
		return field.ErrorList{field.Invalid(field.NewPath("kind"), object["kind"], "must be example.com/v1 Test")}
	}
	meta, found, err := objectmeta.GetObjectMeta(object, false)
	if err != nil {
		return field.ErrorList{field.Invalid(field.NewPath("metadata"), nil, err.Error())}
	}
	if found && len(meta.Name) > 0 {
		namespaced := len(meta.Namespace) > 0
		errs = append(errs, metav1validation.ValidateObjectMeta(meta, namespaced, metav1validation.NameIsDNSSubdomain, field.NewPath("metadata"))...)
	}
	var ruleOptions []cel.Option
	checkLists := true
	if old == nil {
		errs = append(errs, validation.ValidateCustomResource(nil, object, s.validator)...)
	} else {
		correlation := common.NewCorrelatedObject(object, old, &model.Structural{Structural: s.structural})
		errs = append(errs, validation.ValidateCustomResourceUpdate(nil, object, old, s.validator, validation.WithRatcheting(correlation))...)
		ruleOptions = append(ruleOptions, cel.WithRatcheting(correlation))
		checkLists = len(listtype.ValidateListSetsAndMaps(nil, s.structural, old)) == 0
	}
	errs = append(errs, objectmeta.Validate(nil, object, s.structural, false)...)
	if checkLists {
		errs = append(errs, listtype.ValidateListSetsAndMaps(nil, s.structural, object)...)
	}
	if s.rules != nil && len(errs) == 0 {
		var previous interface{}
		if old != nil {
			previous = old
		}
		found, _ := s.rules.Validate(context.Background(), nil, s.structural, object, previous, celconfig.RuntimeCELCostBudget, ruleOptions...)
		errs = append(errs, found...)
	}
	return errs
}

func price(root *structuralschema.Structural, rule string) answer {
	root = root.DeepCopy()
	root.XValidations = apiextensionsv1.ValidationRules{{Rule: rule}}
	environments := environment.MustBaseEnvSet(environment.DefaultCompatibilityVersion())
	compiled, err := cel.Compile(root, model.SchemaDeclType(root, true), celconfig.PerCallLimit, environments, cel.NewExpressionsEnvLoader())
	if err != nil {
		return answer{Failure: err.Error()}
	}
	if compiled[0].Error != nil {
		return answer{Errors: []problem{{Path: "rule", Detail: compiled[0].Error.Detail}}}
	}
	return answer{Cost: &compiled[0].MaxCost}
}

func define(text []byte) answer {
	var external apiextensionsv1.CustomResourceDefinition
	if err := utiljson.Unmarshal(text, &external); err != nil {
		return answer{Errors: []problem{{Type: "Undecodable", Detail: err.Error()}}}
	}
	apiextensionsv1.SetDefaults_CustomResourceDefinition(&external)
	apiextensionsv1.SetDefaults_CustomResourceDefinitionSpec(&external.Spec)
	if conversion := external.Spec.Conversion; conversion != nil && conversion.Webhook != nil {
		if config := conversion.Webhook.ClientConfig; config != nil && config.Service != nil {
			apiextensionsv1.SetDefaults_ServiceReference(config.Service)
		}
	}
	var internal apiextensions.CustomResourceDefinition
	scheme := runtime.NewScheme()
	if err := apiextensionsv1.AddToScheme(scheme); err != nil {
		return answer{Failure: err.Error()}
	}
	if err := apiextensions.AddToScheme(scheme); err != nil {
		return answer{Failure: err.Error()}
	}
	if err := apiextensionsv1.RegisterConversions(scheme); err != nil {
		return answer{Failure: err.Error()}
	}
	if err := scheme.Convert(&external, &internal, nil); err != nil {
		return answer{Failure: err.Error()}
	}
	internal.ObjectMeta.ManagedFields = nil
	internal.ObjectMeta.CreationTimestamp = metav1.Time{}
	internal.Status = apiextensions.CustomResourceDefinitionStatus{}
	for _, version := range internal.Spec.Versions {
		if version.Storage {
			internal.Status.StoredVersions = append(internal.Status.StoredVersions, version.Name)
		}
	}
	return answer{Errors: list(crdvalidation.ValidateCustomResourceDefinition(context.Background(), &internal))}
}
