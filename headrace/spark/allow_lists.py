"""The allow-lists of SQL that is received over the network.

A plan node, an expression, a value or a function that is not listed is refused, so an addition of a
later Spark is refused until it is listed here. Classes are named without their package.
tests/spark/test_allowed_sql.py checks good and hostile statements, and that each function exists.
"""

from __future__ import annotations


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


PLANS = _words("""
    Project Filter Aggregate Join LateralJoin Sort GlobalLimit LocalLimit LimitAll Offset
    Union Except Intersect Distinct SubqueryAlias UnresolvedRelation UnresolvedInlineTable
    OneRowRelation LocalRelation UnresolvedSubqueryColumnAliases Generate
    UnresolvedTableValuedFunction WithWindowDefinition UnresolvedHaving UnresolvedQualify
    Pivot Unpivot UnresolvedWith UnresolvedHint Sample RepartitionByExpression PipeOperator
    UnresolvedTVFAliases
""")

EXPRESSIONS = _words("""
    Alias UnresolvedAlias MultiAlias UnresolvedAttribute UnresolvedStar
    UnresolvedStarExceptOrReplace UnresolvedStarExcept UnresolvedFunction
    UnresolvedGenerator UnresolvedExtractValue UnresolvedOrdinal
    UnresolvedSubqueryColumnAliases Literal Cast Collate UnresolvedCollation And Or Not
    EqualTo EqualNullSafe GreaterThan GreaterThanOrEqual LessThan LessThanOrEqual In IsNull
    IsNotNull IsNaN IsUnknown IsNotUnknown Between Like ILike RLike LikeAll LikeAny
    NotLikeAll NotLikeAny Add Subtract Multiply Divide IntegralDivide Remainder UnaryMinus
    UnaryPositive BitwiseAnd BitwiseOr BitwiseXor BitwiseNot ShiftLeft ShiftRight
    ShiftRightUnsigned Concat Coalesce CaseWhen If CreateNamedStruct CreateStruct
    CreateArray CreateMap LambdaFunction UnresolvedNamedLambdaVariable SemiStructuredExtract
    StringTrim StringTrimLeft StringTrimRight StringTrimBoth Substring Overlay StringLocate
    Extract TimestampAdd TimestampDiff CurrentDate CurrentTimestamp TryCast SortOrder
    WindowExpression UnresolvedWindowExpression WindowSpecDefinition WindowSpecReference
    SpecifiedWindowFrame UnspecifiedFrame$ CurrentRow$ UnboundedPreceding$
    UnboundedFollowing$ ScalarSubquery Exists InSubquery ListQuery LateralSubquery
    AttributeReference AggregateExpression AnyValue First Last Rollup Cube GroupingSets
    PipeExpression PivotColumn PivotValue
""")

# Plain data inside the nodes above: it does nothing and contains no node.
VALUES = _words("""
    None$ UTF8String Decimal CalendarInterval UUID ExprId AliasIdentifier JoinHint
    NumericEvalContext Enumeration$Val GenericInternalRow SampleMethod$Bernoulli$ RowFrame$
    RangeFrame$ Complete$ Inner$ Cross$ LeftOuter$ RightOuter$ FullOuter$ LeftSemi$
    LeftAnti$ UsingJoin NaturalJoin Ascending$ Descending$ NullsFirst$ NullsLast$ Metadata
    Nil$ FunctionIdentifier
""")

HINTS = frozenset({"BROADCAST", "BROADCASTJOIN", "MAPJOIN", "MERGE", "SHUFFLE_HASH"})

GENERATORS = _words("""
    explode explode_outer posexplode posexplode_outer inline inline_outer json_tuple
""")

# Arguments that determine the size of the result: each must be an integer literal.
SIZED: dict[str, tuple[int, ...]] = {
    "repeat": (1,), "space": (0,), "lpad": (1,), "rpad": (1,), "array_repeat": (1,),
    "sequence": (0, 1), "array_insert": (1,), "format_number": (1,),
    "round": (1,), "bround": (1,), "floor": (1,), "ceil": (1,), "ceiling": (1,),
}  # fmt: skip

_OPERATORS = """
    ! != % & * + - / < << <= <=> <> = == > >= >> >>> ^ | || ~ and or not in between like
    ilike rlike regexp div mod case when if cast
"""
_SCALAR = """
    abs acos acosh asin asinh atan atan2 atanh cbrt ceil ceiling conv cos cosh cot csc
    degrees e exp expm1 factorial floor greatest hypot least ln log log10 log1p log2
    negative pi pmod positive pow power radians rand randn random rint round bround sec sign
    signum sin sinh sqrt tan tanh try_add try_divide try_mod try_multiply try_subtract
    uniform width_bucket bin bit_count bit_get getbit shiftleft shiftright
    shiftrightunsigned hex unhex crc32 hash xxhash64 md5 sha sha1 sha2 uuid bigint binary
    boolean date decimal double float int smallint string timestamp tinyint typeof coalesce
    equal_null ifnull isnan isnotnull isnull nanvl nullif nullifzero nvl nvl2 zeroifnull
    ascii base64 bit_length btrim char char_length character_length chr collate collation
    concat concat_ws contains decode elt encode endswith find_in_set format_number
    from_base32 initcap instr is_valid_utf8 jaro_winkler_similarity lcase left len length
    levenshtein locate lower lpad ltrim luhn_check make_valid_utf8 mask octet_length overlay
    position quote regexp_count regexp_extract regexp_extract_all regexp_instr regexp_like
    regexp_replace regexp_substr repeat replace reverse right rpad rtrim sentences soundex
    space split split_part startswith substr substring substring_index to_base32 to_binary
    to_char to_number to_varchar translate trim try_to_binary try_to_number try_url_decode
    try_validate_utf8 ucase unbase64 upper url_decode url_encode validate_utf8 parse_url
    try_parse_url
"""
_TIME = """
    add_months convert_timezone curdate current_date current_time current_timestamp
    current_timezone date_add date_diff date_format date_from_unix_date date_part date_sub
    date_trunc dateadd datediff datepart day dayname dayofmonth dayofweek dayofyear extract
    from_unixtime from_utc_timestamp hour last_day localtime localtimestamp make_date
    make_dt_interval make_interval make_time make_timestamp make_timestamp_ltz
    make_timestamp_ntz make_ym_interval minute month monthname months_between next_day now
    quarter second time time_bucket time_diff time_from_micros time_from_millis
    time_from_seconds time_to_micros time_to_millis time_to_seconds time_trunc
    timestamp_micros timestamp_millis timestamp_seconds to_date to_time to_timestamp
    to_timestamp_ltz to_timestamp_ntz to_unix_timestamp to_utc_timestamp trunc
    try_make_interval try_make_timestamp try_make_timestamp_ltz try_make_timestamp_ntz
    try_to_date try_to_time try_to_timestamp unix_date unix_micros unix_millis unix_seconds
    unix_timestamp weekday weekofyear year window window_time session_window
"""
_NESTED = """
    aggregate array array_append array_compact array_contains array_distinct array_except
    array_insert array_intersect array_join array_max array_min array_position array_prepend
    array_remove array_repeat array_size array_sort array_union arrays_overlap arrays_zip
    cardinality element_at exists filter flatten forall get map map_concat map_contains_key
    map_entries map_filter map_from_arrays map_from_entries map_keys map_values map_zip_with
    named_struct reduce sequence shuffle size slice sort_array str_to_map struct transform
    transform_keys transform_values try_element_at zip_with from_csv from_json
    get_json_object json_array_length json_object_keys schema_of_csv schema_of_json to_csv
    to_json parse_json try_parse_json is_valid_variant is_variant_null schema_of_variant
    to_variant_object try_variant_get variant_get vector_cosine_similarity
    vector_inner_product vector_l2_distance vector_norm vector_normalize
"""
_AGGREGATES = """
    any any_value approx_count_distinct approx_percentile approx_top_k
    approx_top_k_accumulate approx_top_k_combine approx_top_k_estimate array_agg avg bit_and
    bit_or bit_xor bitmap_and_agg bitmap_bit_position bitmap_bucket_number
    bitmap_construct_agg bitmap_count bitmap_or_agg bool_and bool_or collect_list
    collect_set corr count count_if covar_pop covar_samp every first first_value grouping
    grouping_id histogram_numeric kurtosis last last_value listagg max max_by mean median
    min min_by mode percentile percentile_approx percentile_cont percentile_disc regr_avgx
    regr_avgy regr_count regr_intercept regr_r2 regr_slope regr_sxx regr_sxy regr_syy
    schema_of_variant_agg skewness some std stddev stddev_pop stddev_samp string_agg sum
    try_avg try_sum var_pop var_samp variance vector_avg vector_sum cume_dist dense_rank lag
    lead nth_value ntile percent_rank rank row_number hll_sketch_agg hll_sketch_estimate
    hll_union hll_union_agg theta_difference theta_intersection theta_intersection_agg
    theta_sketch_agg theta_sketch_estimate theta_union theta_union_agg kll_merge_agg_bigint
    kll_merge_agg_double kll_merge_agg_float kll_sketch_agg_bigint kll_sketch_agg_double
    kll_sketch_agg_float kll_sketch_get_n_bigint kll_sketch_get_n_double
    kll_sketch_get_n_float kll_sketch_get_quantile_bigint kll_sketch_get_quantile_double
    kll_sketch_get_quantile_float kll_sketch_get_rank_bigint kll_sketch_get_rank_double
    kll_sketch_get_rank_float kll_sketch_merge_bigint kll_sketch_merge_double
    kll_sketch_merge_float
"""
FUNCTIONS = _words(_OPERATORS + _SCALAR + _TIME + _NESTED + _AGGREGATES) | GENERATORS

# The SQL of a refused node, where the name of its class does not show it.
WORDS = {
    "ScriptTransformation": "TRANSFORM … USING",
    "CompoundBody": "BEGIN … END",
    "RelationTimeTravel": "VERSION or TIMESTAMP AS OF",
    "NamedStreamingRelation": "STREAM",
    "UnresolvedExecuteImmediate": "EXECUTE IMMEDIATE",
    "ExpressionWithUnresolvedIdentifier": "IDENTIFIER(…)",
    "PlanWithUnresolvedIdentifier": "IDENTIFIER(…)",
    "NamedParameter": "a parameter",
    "PosParameter": "a parameter",
    "UnresolvedEventTimeWatermark": "WATERMARK",
    "FunctionTableSubqueryArgumentExpression": "TABLE(…) as an argument",
}
