CREATE STREAM sales (price INT, name STRING GENERATED ALWAYS AS (_raw:name::string)) WITH (format = 'csv');
