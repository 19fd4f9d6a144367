CREATE TABLE pages (url STRING) USING orc LOCATION 'pages.orc';
